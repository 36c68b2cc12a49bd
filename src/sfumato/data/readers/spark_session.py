"""Open a Spark session of one's own for a command, and say whether this machine can.

``sf.source(frame)`` needs none of this: there the session is the caller's.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.data.readers.spark_package import spark_package
from sfumato.errors import DataError, UsageError

if TYPE_CHECKING:
    from sfumato.data.readers.spark import SparkSession

LEAST_JAVA = 17
PATIENCE = 10.0  # seconds that a server may take to answer at all
INSTALL = "Run: pip install 'sfumato[spark]'"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
"""Spark would show pages, progress and messages that quote values."""
_READING = {
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""Files are read as a scan reads them, whatever the defaults of a machine or a server are."""


def installed() -> dict[str, str]:
    """The versions of Spark's packages for Python that are installed, by name."""
    found = {}
    for name in ("pyspark", "pyspark-client"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def java_version() -> int | None:
    """The version of Java that Spark would start; None without one."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None:
        return None
    try:
        said = subprocess.run([found, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?([0-9]+)', said.stderr)
    return int(match[1]) if match else None


def obstacle(*, remote: bool = False) -> tuple[str, str] | None:
    """What keeps this machine from running Spark, and what to do; None if nothing does.

    Parameters
    ----------
    remote : bool
        Whether a server runs Spark, so that this machine needs no Java.
    """
    found = installed()
    if not found:
        return "pyspark is not installed", INSTALL
    if len(found) > 1:
        both = "pyspark-client is installed beside pyspark, in the same folder"
        return both, "Run: pip uninstall -y pyspark-client pyspark, then install pyspark again"
    (version,) = found.values()
    if int(version.partition(".")[0]) < 4:
        return f"pyspark {version} is installed, and 4 or later is needed", INSTALL
    if remote:
        return None
    return _local_obstacle(full="pyspark" in found)


def _local_obstacle(*, full: bool) -> tuple[str, str] | None:
    """The same, where Spark is to run on this machine; ``full`` if all of Spark is installed."""
    if not full:
        return "pyspark-client only connects to servers", f"Give --remote, or: {INSTALL}"
    java = java_version()
    if java is None:
        return "there is no Java, which Spark runs on", "Install Java 17 or 21, or set JAVA_HOME"
    if java < LEAST_JAVA:
        return f"Java {java} is too old for Spark 4", "Install Java 17 or 21, or set JAVA_HOME"
    return None


def fitness() -> str:
    """Say in a sentence whether this machine runs Spark."""
    stands = obstacle()
    if stands is not None:
        return f"{stands[0]} (only needed for tables in Spark)"
    return f"pyspark {installed()['pyspark']} with Java {java_version()}"


@contextmanager
def opened_session(master: str | None, remote: str | None) -> Iterator[SparkSession]:
    """Start Spark, or connect to its server, and stop it at the end.

    Parameters
    ----------
    master : str or None
        Where Spark runs, such as "local[2]" or "yarn"; None: as Spark itself is configured.
    remote : str or None
        The address of a Spark Connect server, such as "sc://host:15002".

    Raises
    ------
    UsageError
        If both are given, or Spark cannot run here.
    DataError
        If it does not start, or the server does not answer.
    """
    asked = "--engine spark"
    if master is not None and remote is not None:
        raise UsageError(asked, "--master and --remote exclude each other", "Give one of them")
    stands = obstacle(remote=remote is not None)
    if stands is not None:
        raise UsageError(asked, *stands)
    session = _started(master, remote)
    try:
        yield session
    finally:
        getattr(session, "stop")()  # noqa: B009


def _started(master: str | None, remote: str | None) -> SparkSession:
    try:
        with _silenced(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            builder = importlib.import_module("pyspark.sql").SparkSession.builder
            for name, value in _READING.items():
                builder = builder.config(name, value)
            if remote is not None:
                if remote.startswith("sc:"):
                    _require_answer(remote)
                builder = builder.remote(remote)
            else:
                for name, value in _SETTINGS.items():
                    builder = builder.config(name, value)
                builder = builder if master is None else builder.master(master)
                if master is None or master.startswith("local"):
                    # Workers on this machine, which count, know what this process knows.
                    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            session: SparkSession = builder.getOrCreate()
            # Connecting is lazy: a first answer shows that there is a server.
            if session.version:
                if not (master or "").startswith("local"):
                    session.addArtifacts(spark_package(), pyfile=True)
                return session
    except Exception:
        pass
    # Outside the except block: Spark's own error may quote an address with a token.
    if remote is not None:
        raise DataError(
            "--remote",
            "no Spark Connect server answers at that address",
            "Check the address, and that the server is of Spark 4",
        )
    raise DataError("--master", "Spark does not start there", "Try --master local[2]")


def _require_answer(remote: str) -> None:
    """Raise unless something answers at an address: Spark's own client would ask for minutes."""
    grpc = importlib.import_module("grpc")
    client = importlib.import_module("pyspark.sql.connect.client")
    with client.DefaultChannelBuilder(remote).toChannel() as channel:
        grpc.channel_ready_future(channel).result(timeout=PATIENCE)


@contextmanager
def _silenced() -> Iterator[None]:
    """Have a child process that starts meanwhile write its messages to nowhere.

    Java inherits the file behind standard error, and Spark's log quotes values of the data.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
