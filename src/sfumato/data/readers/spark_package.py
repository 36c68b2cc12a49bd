"""Whether the executors of Spark can run this package, and what gets it there.

A table is counted by this package where its rows lie, so the executors need it, and what it is made
of. That is found out before anything is charged, by a job that reads no table.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType

from sfumato._version import __version__
from sfumato.errors import DataError

# What executors need beside this package: it has compiled parts, which no archive brings.
NEEDED = ("numpy", "pyarrow", "msgspec", "cryptography")

_REMEDY = "Run spark.addArtifacts(sf.spark_package(), pyfile=True), and ask again"


@cache
def spark_package() -> str:
    """Write this package as an archive for the executors of Spark, and return its path.

    A Spark session whose executors lack this package, or have another version of it, is given it by
    ``spark.addArtifacts(sf.spark_package(), pyfile=True)``. The archive is removed as this process
    ends. The executors must have numpy, pyarrow, msgspec and cryptography themselves.

    Returns
    -------
    str
        The path of a zip file.

    >>> import sfumato as sf
    >>> sf.spark_package().endswith(".zip")
    True
    """
    folder = tempfile.mkdtemp(prefix="sfumato-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    package = Path(__file__).parents[2]
    archive = Path(folder) / f"sfumato-{__version__}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for path in sorted((*package.rglob("*.py"), *package.rglob("*.pyi"))):
            written.write(path, path.relative_to(package.parent))
    return str(archive)


def _reported(batches: Iterator[object]) -> Iterator[object]:
    """Give the versions of what an executor has, as JSON: it runs where this package may not be."""
    # It takes its own imports along, and nothing of this module.
    from importlib import import_module
    from json import dumps

    from pyarrow import record_batch

    for _ in batches:
        pass
    versions: dict[str, str | None] = {}
    for name in ("numpy", "pyarrow", "msgspec", "cryptography", "sfumato"):
        try:
            versions[name] = import_module(name).__version__
            if name == "sfumato":
                import_module("sfumato.data.readers.spark_tasks")
        except Exception:
            versions[name] = None
    yield record_batch({"versions": [dumps(versions, sort_keys=True)]})


# The same as a function of no module: it is sent to the executors with its code.
PROBE = FunctionType(_reported.__code__, {"__builtins__": __builtins__}, "reported")
PROBE.__module__ = "__main__"


def require_package(name: str, reports: list[str]) -> None:
    """Refuse executors that cannot run this package, or run another version of it.

    Parameters
    ----------
    name : str
        What errors call the table.
    reports : list of str
        What ``PROBE`` gave on each of some executors.

    Raises
    ------
    DataError
        With the line that mends it.
    """
    executors: list[Mapping[str, str | None]] = [json.loads(report) for report in reports]
    purpose = f"counting rows of {name}"
    for executor in executors:
        if lacking := [package for package in NEEDED if executor[package] is None]:
            raise DataError(
                purpose,
                f"a worker of Spark has no {' and no '.join(lacking)}",
                "Install it where Spark's workers run Python; an archive of code cannot bring it",
            )
    versions = {executor["sfumato"] for executor in executors}
    if None in versions:
        raise DataError(purpose, "a worker of Spark does not have this package", _REMEDY)
    if others := sorted(str(version) for version in versions - {__version__}):
        raise DataError(
            purpose,
            f"a worker of Spark has version {' and '.join(others)}, and this is {__version__}",
            _REMEDY,
        )
