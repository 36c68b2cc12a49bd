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
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Protocol, TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.answers.counts import Needs
from sfumato.data.reader import Columns, Reader
from sfumato.data.readers.spark_failures import spark_guarded
from sfumato.data.readers.spark_package import PROBE, require_package
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
from sfumato.data.readers.spark_types import SparkField, arrow_type, is_text
from sfumato.data.scan import Scan
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import Lattice
from sfumato.errors import DataError, UsageError
from sfumato.mechanisms.thresholds import KEY, NOISY_ROWS, ROWS_OF_KEY, KeyRule
from sfumato.privacy.unit import Unit

MOST_NUMBERS = 2**25
"""How many numbers the driver may be sent at most: counts and sums of cells, 256 MiB."""

LEAST_VERSION = 4

_PROBED_TASKS = 8
"""In how many tasks it is tried whether executors can count: on most of them, at no great cost."""

_USUAL_PARTS = 200
"""How many tasks count persons where the session does not say it: Spark's own default."""

_ROWS = "rows"


def _bucket_of(value: str) -> str:
    return f"CAST(pmod(hash({value}), {BUCKETS}) AS INT)"


_ARE_SPARKS_OWN = f"{_bucket_of('0L')} = 2141"
"""Whether a session has no function of its own named as one of these: it may give one person many
buckets. Spark computes this once, when it plans. Otherwise no row has a bucket, and the job fails.
"""


class _Schema(Protocol):
    @property
    def fields(self) -> Sequence[SparkField]: ...


class _FileReader(Protocol):
    def parquet(self, *paths: str) -> SparkFrame: ...


class _Settings(Protocol):
    def get(self, name: str, /) -> str: ...


class SparkSession(Protocol):
    """What is used of a session."""

    @property
    def version(self) -> str: ...
    @property
    def read(self) -> _FileReader: ...
    @property
    def conf(self) -> _Settings: ...
    def range(self, start: int, end: int, step: int, parts: int, /) -> SparkFrame: ...
    def addArtifacts(self, *paths: str, pyfile: bool) -> None: ...  # noqa: N802


Task: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class _Grouped(Protocol):
    def sum(self, *columns: str) -> SparkFrame: ...


class SparkFrame(Protocol):
    """What is used of a DataFrame."""

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def schema(self) -> _Schema: ...
    @property
    def sparkSession(self) -> SparkSession: ...  # noqa: N802
    @property
    def isStreaming(self) -> bool: ...  # noqa: N802
    def toDF(self, *names: str) -> SparkFrame: ...  # noqa: N802
    def selectExpr(self, *expressions: str) -> SparkFrame: ...  # noqa: N802
    def filter(self, condition: str, /) -> SparkFrame: ...
    def repartition(self, parts: int, column: str, /) -> SparkFrame: ...
    def groupBy(self, *columns: str) -> _Grouped: ...  # noqa: N802
    def mapInArrow(self, function: Task, schema: str) -> SparkFrame: ...  # noqa: N802
    def toArrow(self) -> pa.Table: ...  # noqa: N802


def _is_frame(data: object) -> TypeGuard[SparkFrame]:
    return all(hasattr(type(data), ability) for ability in ("sparkSession", "selectExpr", "toDF"))


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
        """Read a DataFrame."""
        if type(data).__module__.startswith("pyspark.pandas"):
            obstacle = "it is a frame of pandas on Spark"
            raise UsageError(f"a source of type {type(data).__name__}", obstacle, _TO_SPARK)
        return cls(data) if _is_frame(data) else None

    def __init__(self, frame: SparkFrame) -> None:
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

    def _fields(self) -> list[SparkField]:
        def fields() -> list[SparkField]:
            self._ready()
            return list(self._frame.schema.fields)

        return spark_guarded(self.name, self._frame, fields)

    def names(self) -> list[str]:
        """Give the names of the columns."""
        return [field.name for field in self._fields()]

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted."""
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
                obstacle = (
                    f"{numbers:,} numbers could come back, and the driver takes"
                    f" {self.most_numbers:,}"
                )
                asked = f"counting {need.counted} of {self.name}"
                raise DataError(asked, obstacle, "Ask for fewer bins or axes")
        if not self._is_probed:
            self._probe()
            self._is_probed = True

    def _probe(self) -> None:
        """Refuse executors that do not have this package, before anything is charged."""

        def reported() -> pa.Table:
            numbers = self._ready().range(0, _PROBED_TASKS, 1, _PROBED_TASKS)
            return _mapped(numbers, PROBE, "versions STRING").toArrow()

        reports = spark_guarded(self.name, self._frame, reported)
        require_package(self.name, reports["versions"].unique().to_pylist())

    def count(self, scan: Scan) -> list[Cube]:
        """Count all needs of a scan in one job: one cube for each, in order."""

        def counted() -> pa.Table:
            columns = CountedColumns.of(scan.needs)
            return (
                self._counted(scan, columns)
                .toArrow()
                .rename_columns([*columns.cells, *columns.numbers])
            )

        table = spark_guarded(self.name, self._frame, counted)
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
            As ``selecting.keys_of_groups`` takes them.
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

        table = spark_guarded(self.name, self._frame, run)
        return unpacked(need.lattice, table, key_type)

    def _key_types(self, scan: Scan) -> dict[str, pa.DataType]:
        """Return the type of each column of keys."""
        named = {axis.column_name for need in scan.needs for axis in need.columns if axis.has_keys}
        schema = self.schema(dict.fromkeys(named))
        return {name: schema.field(name).type for name in named}

    def _counted(self, scan: Scan, columns: CountedColumns) -> SparkFrame:
        """Return the cells of all needs that all tasks counted together."""
        rows = self._wanted(scan)
        names = tuple(scan.columns)
        if scan.unit.person is not None:
            rows = self._by_person(rows, scan.unit.person, names)
        cells = _mapped(rows, ScanTask(scan, names), columns.ddl)
        return cells.groupBy(*columns.cells).sum(*columns.numbers)

    def _wanted(self, scan: Scan) -> SparkFrame:
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

    def _by_person(self, rows: SparkFrame, person: str, names: Sequence[str]) -> SparkFrame:
        """Bring all rows of a person to one task, and leave out rows without a person."""
        name = _plain_name(names.index(person))
        type_ = self.schema({person: None}).field(person).type
        # The sum makes the two zeros one. Equal ids of other types are equal to Spark as well.
        known = f"CAST({name} AS DOUBLE) + 0D" if pt.is_floating(type_) else name
        bucket = f"CASE WHEN {_ARE_SPARKS_OWN} THEN {_bucket_of(known)} END AS {BUCKET}"
        # Some services write "auto" here.
        stated = self._ready().conf.get("spark.sql.shuffle.partitions")
        parts = int(stated) if stated.isdigit() else _USUAL_PARTS
        present = rows.filter(f"{name} IS NOT NULL").selectExpr("*", bucket)
        return present.repartition(parts, BUCKET)


def _mapped(rows: SparkFrame, task: Task, schema: str) -> SparkFrame:
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


_TO_SPARK = "Give frame.to_spark()"


def _plain_name(place: int) -> str:
    return f"sfumato_column_{place}"
