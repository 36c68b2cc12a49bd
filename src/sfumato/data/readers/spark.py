"""Have Spark count a table: classic Spark and Spark Connect, from version 4 on.

Everything is SQL text and functions of DataFrames, so that it works over Connect. The session is
the caller's: it is never stopped, and none of its settings is changed or relied on. The secrets
that choose rows reach Spark as a relation of one row, whose values no plan, event log or page of
Spark shows.

A DataFrame is lazy: each count runs its plan again. Rows that change between two counts of one
release, as with ``rand()`` or a table that is written to, are other rows; see docs/howto/spark.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Protocol, TypeAlias, TypeGuard, get_args

import pyarrow as pa

from sfumato.answers.counts import Needs
from sfumato.cube import Cube
from sfumato.data.engines.choosing import ChoosingTable
from sfumato.data.engines.key_selection import groups_query, unpacked
from sfumato.data.engines.query import CountQuery, can_count, count_query, looked_at
from sfumato.data.engines.readings import Table
from sfumato.data.engines.results import columns_of
from sfumato.data.engines.spark import ROWS, Spark, secrets_table
from sfumato.data.engines.spark_failures import spark_guarded
from sfumato.data.engines.spark_types import SparkField, arrow_type, is_text
from sfumato.data.reader import Ability, Columns, Progress
from sfumato.errors import DataError, UsageError
from sfumato.mechanisms.key_rules import NOISY_ROWS, ROWS_OF_KEY, KeyRule
from sfumato.mechanisms.thresholds import ThresholdLaplace
from sfumato.privacy.unit import Unit

MOST_NUMBERS = 2**25
"""How many numbers the driver may be sent at most: counts and sums of cells, 256 MiB."""

LEAST_VERSION = 4


class _Schema(Protocol):
    @property
    def fields(self) -> Sequence[SparkField]: ...


class _FileReader(Protocol):
    def parquet(self, *paths: str) -> SparkFrame: ...


class SparkSession(Protocol):
    """What is used of a session."""

    @property
    def version(self) -> str: ...
    @property
    def read(self) -> _FileReader: ...
    def sql(self, text: str, **views: SparkFrame) -> SparkFrame: ...
    def createDataFrame(self, data: pa.Table, /) -> SparkFrame: ...  # noqa: N802


ShownOf: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


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
    def mapInArrow(self, function: ShownOf, schema: str) -> SparkFrame: ...  # noqa: N802
    def toArrow(self) -> pa.Table: ...  # noqa: N802


def _is_frame(data: object) -> TypeGuard[SparkFrame]:
    return all(hasattr(type(data), ability) for ability in ("sparkSession", "selectExpr", "toDF"))


class SparkTable(ChoosingTable):
    """A DataFrame, which Spark counts where its rows lie. Only cells come back to the driver."""

    name = "spark table"
    same_rows = (
        "The DataFrame of Spark gave the same rows in all jobs of this release: nobody wrote to its"
        " tables or files meanwhile, and it draws none at random."
    )
    abilities: ClassVar[frozenset[Ability]] = frozenset(get_args(Ability))
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
        self._selects: bool | None = None

    # --- the table ------------------------------------------------------------------------------

    def _ready(self) -> SparkSession:
        """The session, if it is of a version that counts as is promised."""
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

    def supports(self, needs: Needs, unit: Unit) -> bool:
        """Whether Spark can count this, and the driver can hold the cells that come back.

        The size of the lattice decides, and not how many of its cells have rows.
        """
        numbers = needs.lattice.public_size * (1 + needs.n_sums)
        if numbers > self.most_numbers:
            raise DataError(
                f"counting {needs.counted} of {self.name}",
                f"{numbers:,} numbers could come back, and the driver takes {self.most_numbers:,}",
                "Ask for fewer bins or axes",
            )
        return can_count(needs)

    def count(
        self, needs: Sequence[Needs], unit: Unit, key: bytes, progress: Progress | None
    ) -> list[Cube]:
        """Have Spark count each need, in a job of its own."""
        plain, queries = self._queries(needs, unit)
        return [query.cube(columns_of(self._run(query, plain, key))) for query in queries]

    def selects(self, needs: Needs, unit: Unit) -> bool:
        """Whether keys are selected by the workers; the driver is sent those that are shown.

        It is, unless the workers have no Python with this library. Then the driver is sent all.
        """
        if self._selects is None:
            self._selects = self._workers_apply_rules()
        return self._selects and self.supports(needs, unit)

    def select(
        self, needs: Needs, unit: Unit, key: bytes, rule: KeyRule
    ) -> Iterator[pa.RecordBatch]:
        """Have Spark's Python workers apply the rule to the groups, in one job.

        A part that is evaluated again has the same noise. What the rule shows is the result of the
        job: it is not shuffled, held or joined after that.
        """
        # Rows without a cell must not count for their key: they are dropped before it is counted.
        plain, (query,) = self._queries([needs], unit, drops_groups=False)
        # What a rule calls its columns is no column of the table.
        text = groups_query(query, Spark({}))

        def run() -> pa.Table:
            return _shown(self._asked(text, plain, key), rule)

        shown = spark_guarded(self.name, self._frame, run)
        yield from unpacked(needs.lattice, shown.to_batches())

    def _queries(
        self, needs: Sequence[Needs], unit: Unit, *, drops_groups: bool = True
    ) -> tuple[dict[str, str], list[CountQuery]]:
        """What the columns wanted are called, and the query that counts each need."""
        wanted = looked_at(needs, unit, self._choice, self._conditions)
        types = self.schema(dict.fromkeys(wanted))
        table = Table(ROWS, {name: types.field(name).type for name in wanted})
        plain = _plain_names(self.names(), wanted)
        dialect = Spark(plain, drops_groups=drops_groups)
        return plain, [
            count_query(need, unit, table, dialect, self._choice, self._conditions)
            for need in needs
        ]

    def _workers_apply_rules(self) -> bool:
        """Whether the workers can apply a rule, tried on a group of no rows."""

        def tried() -> pa.Table:
            group = self._ready().sql("SELECT 'none' AS key, CAST(0 AS BIGINT) AS rows_of_key")
            return _shown(group, _TRIED)

        try:
            spark_guarded(self.name, self._frame, tried)
        except DataError:
            return False
        return True

    def _run(self, query: CountQuery, plain: Mapping[str, str], key: bytes) -> pa.Table:
        def run() -> pa.Table:
            # Groups that lack a cell are left out here: see ``Dialect.drops_groups``.
            return self._asked(query.text, plain, key).toArrow().drop_null()

        return spark_guarded(self.name, self._frame, run)

    def _asked(self, text: str, plain: Mapping[str, str], key: bytes) -> SparkFrame:
        """What a query of the columns wanted gives, and of the secrets if it names them."""
        session = self._ready()
        views = {"sfumato_rows": self._renamed(plain)}
        if Spark.secrets in text:
            views["sfumato_secrets"] = session.createDataFrame(secrets_table(key))
        return session.sql(text, **views)

    def _renamed(self, plain: Mapping[str, str]) -> SparkFrame:
        """The columns wanted, found by their position, under names that need no quotes."""
        fields = self._fields()
        every = self._frame.toDF(*(_plain_name(place) for place in range(len(fields))))
        taken = set(plain.values())
        return every.selectExpr(
            *(
                # Whatever its collation, text is compared byte by byte.
                f"{name} COLLATE UTF8_BINARY AS {name}" if is_text(field.dataType) else name
                for name, field in zip(every.columns, fields, strict=True)
                if name in taken
            )
        )


def _shown(groups: SparkFrame, rule: KeyRule) -> pa.Table:
    """What the workers show of some groups: one job, whose only result this is."""
    columns = [
        f"{field.name} {field.dataType.typeName()}"
        for field in groups.schema.fields
        if field.name != ROWS_OF_KEY
    ]
    schema = ", ".join([*columns, f"{NOISY_ROWS} bigint"])
    with warnings.catch_warnings():
        # Spark warns of the version of pandas, which it looks for here and does not use.
        warnings.simplefilter("ignore")
        shown = groups.mapInArrow(rule.shown_of, schema)
    return shown.toArrow()


_TRIED = KeyRule(ThresholdLaplace(Fraction(1), 1), bytes(32))
"""A rule by which no keys are selected: it is tried whether workers can apply one."""

_TO_SPARK = "Give frame.to_spark()"


def _plain_name(place: int) -> str:
    return f"sfumato_column_{place}"


def _plain_names(names: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """What the columns wanted are called in queries."""
    return {name: _plain_name(names.index(name)) for name in wanted}
