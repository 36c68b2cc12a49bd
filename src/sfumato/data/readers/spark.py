"""Count a table of Spark: classic Spark and Spark Connect, from version 4 on.

The scan (``data/scan.py``) runs on the executors, one task for each part of the persons, and Spark
adds up the cells that the tasks counted (``readers/spark_tasks.py``). Everything is functions of
DataFrames, so that it works over Connect. The session is the caller's: it is never stopped, and
none of its settings is changed or relied on.

Secrets travel in the functions that are sent to the executors: the key that chooses rows with the
scan, and the secret of a selection, which is noise, in a small function of its own. No plan, event
log or page of Spark shows them.

A DataFrame is lazy: each count runs its plan again. Rows that change between two counts of one
release, as with ``rand()`` or a table that is written to, are other rows; see docs/howto/spark.md.

In the order of the code:

* A command opens a Spark session of its own, and says whether this machine can.
  ``sf.source(frame)`` needs none of this: there the session is the caller's.
* What failed in Spark is said without a word of its messages: they quote values of the data.
* The types of a Spark table's columns, as Arrow names them, are read off the schema, so a table
  without rows has the types of a full one. Spark's package is not imported: a type says its own
  name.
* The reader of a DataFrame, and that of Parquet files, which Spark counts by their path, as
  ``sfumato release --engine spark`` does.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar, cast

import numpy as np
import pyarrow as pa

from sfumato.answers import Needs
from sfumato.basics import public_place
from sfumato.data.reader import PASSED_ON, Columns, Reader, kind_of_failure
from sfumato.data.readers.files import Files, files_of, is_local
from sfumato.data.readers.spark_package import PROBE, require_package, spark_package
from sfumato.data.readers.spark_tasks import (
    BUCKET,
    BUCKETS,
    CountedColumns,
    ScanTask,
    SelectionTask,
    cubes_of,
    of_bytes,
    without_keys,
)
from sfumato.data.scan import Scan
from sfumato.domain import Cube, Lattice
from sfumato.errors import DataError, UsageError
from sfumato.mechanisms import KEY, NOISY_ROWS, ROWS_OF_KEY, KeyRule
from sfumato.privacy import Unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField

# --- sessions -------------------------------------------------------------------------------------

LEAST_JAVA = 17
PATIENCE = 10.0  # seconds that a server may take to answer at all
INSTALL = "Run: pip install 'sfumato[spark]'"
# Spark would show pages, progress and messages that quote values.
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
# Files are read as a scan reads them, whatever the defaults of a machine or a server are.
_READING = {
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


def installed() -> dict[str, str]:
    """Return the versions of Spark's packages for Python that are installed, by name."""
    versions = {}
    for name in ("pyspark", "pyspark-client"):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def java_version() -> int | None:
    """Return the version of Java that Spark would start; None without one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?([0-9]+)', said.stderr)
    return int(match[1]) if match else None


def obstacle(*, remote: bool = False) -> tuple[str, str] | None:
    """Return what keeps this machine from running Spark, and what to do; None if nothing does.

    Parameters
    ----------
    remote : bool
        Whether a server runs Spark, so that this machine needs no Java.
    """
    versions = installed()
    if not versions:
        return "pyspark is not installed", INSTALL
    if len(versions) > 1:
        return (
            "pyspark-client is installed beside pyspark, in the same folder",
            "Run: pip uninstall -y pyspark-client pyspark, then install pyspark again",
        )
    (version,) = versions.values()
    if int(version.partition(".")[0]) < 4:
        return f"pyspark {version} is installed, and 4 or later is needed", INSTALL
    return None if remote else _local_obstacle(full="pyspark" in versions)


def _local_obstacle(*, full: bool) -> tuple[str, str] | None:
    """Do the same where Spark is to run on this machine; ``full``: all of it is installed."""
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
    option = "--engine spark"
    if master is not None and remote is not None:
        raise UsageError(option, "--master and --remote exclude each other", "Give one of them")
    stands = obstacle(remote=remote is not None)
    if stands is not None:
        raise UsageError(option, *stands)
    session = _started(master, remote)
    try:
        yield session
    finally:
        getattr(session, "stop")()  # noqa: B009


def _started(master: str | None, remote: str | None) -> SparkSession:
    try:
        with _silenced(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = _connected(master, remote)
            # Connecting is lazy: a first answer shows that there is a server.
            if session.version:
                # Executors on other machines do not have this package.
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


def _connected(master: str | None, remote: str | None) -> SparkSession:
    """Return a session; a server is asked first whether it is there."""
    builder = importlib.import_module("pyspark.sql").SparkSession.builder
    settings = _READING if remote is not None else _READING | _SETTINGS
    for name, value in settings.items():
        builder = builder.config(name, value)
    if remote is not None:
        if remote.startswith("sc:"):
            # Spark's own client would ask for minutes whether anything answers there.
            grpc = importlib.import_module("grpc")
            client = importlib.import_module("pyspark.sql.connect.client")
            with client.DefaultChannelBuilder(remote).toChannel() as channel:
                grpc.channel_ready_future(channel).result(timeout=PATIENCE)
        builder = builder.remote(remote)
    elif master is not None:
        builder = builder.master(master)
    if remote is None and (master or "local").startswith("local"):
        # Workers on this machine, which count, know what this process knows.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session: SparkSession = builder.getOrCreate()
    return session


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


# --- failures -------------------------------------------------------------------------------------

T = TypeVar("T")

_STOPPED = (
    "its SparkSession was stopped, or its server does not answer",
    "Start a session, and make the DataFrame in it",
)
_GONE = (
    "the table, or a file of it, is no longer there",
    "Make the DataFrame again when nobody writes to the table",
)
# What Spark's error conditions mean; they are names, and hold no value.
_CONDITIONS = {
    "TABLE_OR_VIEW_NOT_FOUND": _GONE,
    "PATH_NOT_FOUND": _GONE,
    "FAILED_READ_FILE": _GONE,
    "FAILED_READ_FILE.FILE_NOT_EXIST": _GONE,
    # Over Connect files are listed at the first use of a DataFrame, and here none was found.
    "UNABLE_TO_INFER_SCHEMA": _GONE,
    "SESSION_CLOSED": _STOPPED,
    "INVALID_HANDLE.SESSION_CLOSED": _STOPPED,
    "INVALID_HANDLE.SESSION_NOT_FOUND": _STOPPED,
    "NO_ACTIVE_SESSION": _STOPPED,
}


def spark_guarded(name: str, frame: object, action: Callable[[], T]) -> T:
    """Do something with Spark. If it fails, say which kind of failure it was, and no more.

    Parameters
    ----------
    name : str
        What the error calls the table.
    frame : DataFrame or SparkSession
    action : callable
    """
    try:
        return action()
    except PASSED_ON:
        raise
    except BaseException as error:
        known = _known(error, frame) or kind_of_failure(error, name)
    # Raised outside the except block: the context that Python adds there would quote values.
    raise DataError(name, *known)


def _known(error: BaseException, frame: object) -> tuple[str, str] | None:
    """Return what stands in the way, and what to do; None where it is not known."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition in _CONDITIONS:
        return _CONDITIONS[condition]
    # Errors of Java that pyspark passes on name their condition, or that of their cause, in a text.
    said = "" if condition is not None else str(error)
    for name, known in _CONDITIONS.items():
        if f"[{name}]" in said:
            return known
    return _STOPPED if is_stopped(frame) else None


def is_stopped(frame: object) -> bool:
    """Tell whether the session of a DataFrame was stopped, as far as its client knows."""
    session = getattr(frame, "sparkSession", frame)
    if (stopped := getattr(session, "is_stopped", None)) is not None:
        return bool(stopped)
    context = getattr(session, "_sc", None)
    return context is not None and getattr(context, "_jsc", True) is None


# --- types ----------------------------------------------------------------------------------------


_PLAIN: Mapping[str, pa.DataType] = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "int": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
# Stands for types that no axis reads: arrays, maps, structs, variants, intervals.
_NESTED = pa.struct([])


def arrow_type(type_: DataType) -> pa.DataType:
    """Give the Arrow type of a Spark type.

    A timestamp of Spark is an instant; one without a time zone is a local time.
    """
    name = type_.typeName()
    if name == "decimal":
        return pa.decimal128(getattr(type_, "precision", 38), getattr(type_, "scale", 0))
    return _PLAIN.get(name, _NESTED)


def is_text(type_: DataType) -> bool:
    """Tell whether a column holds text: it may have a collation, or be padded with blanks."""
    return type_.typeName() in ("string", "varchar", "char")


# --- the reader of a DataFrame --------------------------------------------------------------------

# How many numbers the driver may be sent at most: counts and sums of cells, 256 MiB.
MOST_NUMBERS = 2**25

LEAST_VERSION = 4

# In how many tasks it is tried whether executors can count: on most of them, at no great cost.
_PROBED_TASKS = 8

_ROWS = "rows"


def _bucket_of(value: str) -> str:
    return f"CAST(pmod(hash({value}), {BUCKETS}) AS INT)"


# Whether a session has no function of its own named as one of these: it may give one person many
# buckets. Spark computes this once, when it plans. Otherwise no row has a bucket, and the job
# fails.
_ARE_SPARKS_OWN = f"{_bucket_of('0L')} = 2141"


Task: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class SparkTable(Reader):
    """A DataFrame, counted where its rows lie. Only cells come back to the driver."""

    name = "spark table"
    same_rows = (
        "The DataFrame of Spark gave the same rows in all jobs of this release: nobody wrote to its"
        " tables or files meanwhile, and it draws none at random."
    )
    most_numbers: ClassVar[int] = MOST_NUMBERS

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> SparkTable | None:
        if type(data).__module__.startswith("pyspark.pandas"):
            raise UsageError(
                f"a source of type {type(data).__name__}",
                "it is a frame of pandas on Spark",
                "Give frame.to_spark()",
            )
        abilities = ("sparkSession", "selectExpr", "toDF")
        is_frame = all(hasattr(type(data), ability) for ability in abilities)
        return cls(cast("DataFrame", data)) if is_frame else None

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._is_probed = False

    # --- the table ------------------------------------------------------------------------------

    def _ready(self) -> SparkSession:
        """Return the session, if it is of a version that counts as is promised."""
        session = self._frame.sparkSession
        version = session.version
        if int(version.partition(".")[0]) < LEAST_VERSION:
            raise DataError(
                self.name,
                f"its session is of Spark {version}, which lacks functions that Sfumato needs",
                f"Use Spark {LEAST_VERSION} or later",
            )
        if self._frame.isStreaming:
            raise DataError(
                self.name,
                "it is a stream, which never has all its rows",
                "Write the stream to a table, and give that",
            )
        return session

    def _fields(self) -> list[StructField]:
        def fields() -> list[StructField]:
            self._ready()
            return list(self._frame.schema.fields)

        return spark_guarded(self.name, self._frame, fields)

    def names(self) -> list[str]:
        return [field.name for field in self._fields()]

    def schema(self, columns: Columns) -> pa.Schema:
        return pa.schema(
            [
                (field.name, arrow_type(field.dataType))
                for field in self._fields()
                if field.name in columns
            ]
        )

    # --- counting -------------------------------------------------------------------------------

    def require(self, needs: Sequence[Needs], unit: Unit) -> None:
        """Refuse what the driver cannot hold, and executors that cannot count.

        The size of the lattice decides, and not how many of its cells have rows.
        """
        for need in needs:
            numbers = need.lattice.public_size * (1 + need.n_sums)
            if numbers > self.most_numbers:
                most = f"the driver takes {self.most_numbers:,}"
                raise DataError(
                    f"counting {need.counted} of {self.name}",
                    f"{numbers:,} numbers could come back, and {most}",
                    "Ask for fewer bins or axes",
                )
        # Asking the executors takes a job of its own, so they are asked once for a table.
        if not self._is_probed:
            reports = spark_guarded(self.name, self._frame, self._reported)
            require_package(self.name, reports["versions"].unique().to_pylist())
            self._is_probed = True

    def _reported(self) -> pa.Table:
        numbers = self._ready().range(0, _PROBED_TASKS, 1, _PROBED_TASKS)
        return _mapped(numbers, PROBE, "versions STRING").toArrow()

    def count(self, scan: Scan) -> list[Cube]:
        """Count all needs of a scan in one job: one cube for each, in order."""

        columns = CountedColumns.of(scan.needs)
        counted = spark_guarded(
            self.name, self._frame, lambda: self._counted(scan, columns).toArrow()
        )
        table = counted.rename_columns([*columns.cells, *columns.numbers])
        return cubes_of(scan, table, self._key_types(scan))

    def select(self, scan: Scan, rule: KeyRule) -> Iterator[pa.RecordBatch]:
        """Count by keys, and let the executors select from them: the driver sees what is shown.

        A part that is evaluated again has the same noise. What the rule shows is the result of the
        job: it is not shuffled, held or joined after that.

        Parameters
        ----------
        scan : Scan
            Of one need with one axis of keys, without sums.
        rule : KeyRule

        Returns
        -------
        iterable of pyarrow.RecordBatch
            As ``key_selection.keys_of_groups`` takes them.
        """
        (need,) = scan.needs
        (key_type,) = self._key_types(scan).values()
        columns = CountedColumns.of(scan.needs)
        cells = columns.packed if len(need.lattice.axes) > 1 else ()
        of_key = "sum(`sum(n)`) OVER (PARTITION BY need, k0)" if cells else "`sum(n)`"
        # A bucket of persons that two tasks saw comes along without a key, and fails the job.
        key = f"CASE WHEN need >= 0 THEN k0 END AS {KEY}"
        groups = [key, f"CAST({of_key} AS BIGINT) AS {ROWS_OF_KEY}"]
        shown = [f"{KEY} BINARY"]
        if cells:
            groups += [f"`sum(n)` AS {_ROWS}", *cells]
            shown += [f"{name} BIGINT" for name in (_ROWS, *cells)]
        shown.append(f"{NOISY_ROWS} BIGINT")

        def run() -> pa.Table:
            counted = self._counted(scan, columns).filter("need >= 0 OR `sum(n)` > 1")
            counted = counted.selectExpr(*groups)
            return _mapped(counted, SelectionTask(rule, key_type), ", ".join(shown)).toArrow()

        return unpacked(need.lattice, spark_guarded(self.name, self._frame, run), key_type)

    def _key_types(self, scan: Scan) -> dict[str, pa.DataType]:
        named = {axis.column_name for need in scan.needs for axis in need.columns if axis.has_keys}
        schema = self.schema(dict.fromkeys(named))
        return {name: schema.field(name).type for name in named}

    def _counted(self, scan: Scan, columns: CountedColumns) -> DataFrame:
        """Return the cells of all needs that all tasks counted together."""
        rows = self._wanted(scan)
        names = tuple(scan.columns)
        person = scan.unit.person
        if person is not None:
            # All rows of a person come to one task, and rows without a person are left out.
            name = _plain_name(names.index(person))
            type_ = self.schema({person: None}).field(person).type
            # The sum makes the two zeros one. Equal ids of other types are equal to Spark as well.
            known = f"CAST({name} AS DOUBLE) + 0D" if pa.types.is_floating(type_) else name
            bucket = f"CASE WHEN {_ARE_SPARKS_OWN} THEN {_bucket_of(known)} END AS {BUCKET}"
            # Some services write "auto" here; 200 is Spark's own default.
            stated = self._ready().conf.get("spark.sql.shuffle.partitions") or ""
            parts = int(stated) if stated.isdigit() else 200
            present = rows.filter(f"{name} IS NOT NULL").selectExpr("*", bucket)
            rows = present.repartition(parts, BUCKET)
        cells = _mapped(rows, ScanTask(scan, names), columns.ddl)
        return cells.groupBy(*columns.cells).sum(*columns.numbers)

    def _wanted(self, scan: Scan) -> DataFrame:
        """Return the columns wanted, found by their position, under names that need no quotes."""
        fields = self._fields()
        names = [field.name for field in fields]
        every = self._frame.toDF(*map(_plain_name, range(len(fields))))
        places = [names.index(name) for name in scan.columns]
        return every.selectExpr(
            *(
                # Whatever its collation, text is compared byte by byte.
                f"{_plain_name(place)} COLLATE UTF8_BINARY AS {_plain_name(number)}"
                if is_text(fields[place].dataType)
                else f"{_plain_name(place)} AS {_plain_name(number)}"
                for number, place in enumerate(places)
            )
        )


def _mapped(rows: DataFrame, task: Task, schema: str) -> DataFrame:
    with warnings.catch_warnings():
        # Spark warns of the version of pandas, which it looks for here and does not use.
        warnings.simplefilter("ignore")
        return rows.mapInArrow(task, schema)


def unpacked(lattice: Lattice, shown: pa.Table, key_type: pa.DataType) -> Iterator[pa.RecordBatch]:
    """Give the groups of the keys that are shown a column for each axis."""
    packing = without_keys(lattice)
    places = [place for place, axis in enumerate(lattice.axes) if not axis.has_keys]
    for batch in shown.combine_chunks().to_batches():
        columns = {KEY: of_bytes(batch[KEY], key_type), NOISY_ROWS: batch[NOISY_ROWS]}
        if places:
            packed = [batch[f"g{place}"].to_numpy() for place in range(len(packing.groups))]
            cells = packing.unpack(packed)
            columns[_ROWS] = batch[_ROWS]
            columns |= {
                f"cell_{place}": pa.array(np.ascontiguousarray(column), pa.int64())
                for place, column in zip(places, cells.T, strict=True)
            }
        yield pa.record_batch(columns)


def _plain_name(place: int) -> str:
    return f"sfumato_column_{place}"


# --- the reader of files --------------------------------------------------------------------------


class SparkFiles(SparkTable):
    """Parquet files: a path, a folder or a pattern; or an address that Spark knows.

    The state of local files is known, so an answer about unchanged files is found again, and a file
    that is written to meanwhile is noticed. What lies at another address counts as a table in
    memory: it needs a name.

    Parameters
    ----------
    path : str or path
    session : SparkSession
    """

    def __init__(self, path: str | os.PathLike[str], session: SparkSession) -> None:
        given = os.fspath(path)
        self._files = Files([given], None) if is_local(given) else None
        self.in_memory = self._files is None
        # Elsewhere, an address may hold a password or a key.
        self.name = given if self._files is not None else public_place(given)
        paths = [given]
        if self._files is not None:
            listed = files_of([given])
            if any(file.form != "Parquet" for file in listed):
                raise DataError(
                    given,
                    "not all of these files are Parquet",
                    "Give Spark Parquet files, or a DataFrame",
                )
            folder = os.path.isdir(given)
            paths = [os.path.abspath(given)] if folder else [str(file.path) for file in listed]
        super().__init__(spark_guarded(self.name, session, lambda: session.read.parquet(*paths)))

    def label(self, name: str | None) -> str:
        return super().label(name) if self._files is None else self._files.label(name)

    def place(self, name: str | None) -> str:
        return super().place(name) if self._files is None else self._files.place(name)
