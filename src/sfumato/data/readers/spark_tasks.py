"""What a task of Spark does with its part of a table, and how its counts travel.

A task runs the scan (``data/scan.py``) over all rows of its persons, and gives its cubes as rows:
the occupied cells of each need, packed, with their counts and sums. Spark adds these up.

Nothing here imports Spark. What is sent to the executors are values of this module's classes, so
the package must be there; ``readers/spark_package.py`` sees to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from sfumato.answers import Needs
from sfumato.basics import Array
from sfumato.data.keys import KeyNumbers
from sfumato.data.packed_counts import Packing, sums_may_overflow
from sfumato.data.reader import BATCH_ROWS
from sfumato.data.scan import Scan, cubes_of_pieces
from sfumato.domain import DENSE_LIMIT, Cube, KeyColumn, Label, Lattice
from sfumato.errors import InternalError
from sfumato.mechanisms import KEY, KeyRule

# Into how many buckets persons are divided: all rows of a bucket go to one task.
BUCKETS = 4096

BUCKET = "bucket"
# The need of rows that say which buckets a task saw.
OF_BUCKETS = -1

IN_TWO_TASKS = "Spark brought the rows of one person to two tasks."

# Holds the sum of 2^40 squares of 64 bits, and of all tasks together.
_SUM = pa.decimal128(38, 0)


@dataclass(frozen=True)
class CountedColumns:
    """The columns of counted cells, of all needs of a scan alike; those that a need lacks are 0.

    Attributes
    ----------
    packed, keys, sums : tuple of str
        Packed cells of the axes without keys: "g0", "g1" ...; keys as bytes: "k0", "k1" ...; sums:
        "t0", "t1" ... Beside them, "need" is the place of the need, and "n" the number of rows.
    """

    packed: tuple[str, ...]
    keys: tuple[str, ...]
    sums: tuple[str, ...]

    @classmethod
    def of(cls, needs: Sequence[Needs]) -> CountedColumns:
        """Give the columns that the needs of a scan take."""
        n_packed = max(len(without_keys(need.lattice).groups) for need in needs)
        n_keys = max(len(need.lattice.keyed) for need in needs)
        n_sums = max(need.n_sums for need in needs)
        return cls(_named("g", n_packed), _named("k", n_keys), _named("t", n_sums))

    @property
    def cells(self) -> tuple[str, ...]:
        """What tells cells apart."""
        return ("need", *self.packed, *self.keys)

    @property
    def numbers(self) -> tuple[str, ...]:
        """What is added up of a cell."""
        return ("n", *self.sums)

    @property
    def ddl(self) -> str:
        """The columns with their types, as Spark writes them."""
        types = {"need": "INT", "n": "BIGINT"}
        types |= dict.fromkeys(self.packed, "BIGINT") | dict.fromkeys(self.keys, "BINARY")
        types |= dict.fromkeys(self.sums, "DECIMAL(38, 0)")
        return ", ".join(f"{name} {types[name]}" for name in (*self.cells, *self.numbers))

    def batches(
        self, need: int, packed: Sequence[Array], keys: Sequence[pa.Array], numbers: Sequence[Array]
    ) -> Iterator[pa.RecordBatch]:
        """Give the cells of one need as rows, some at a time."""
        n_rows = len(packed[0])
        zeros = np.zeros(n_rows, np.int64)
        columns: dict[str, pa.Array] = {"need": pa.array(np.full(n_rows, need, np.int32))}
        for place, name in enumerate(self.packed):
            columns[name] = pa.array(packed[place] if place < len(packed) else zeros, pa.int64())
        for place, name in enumerate(self.keys):
            blank = pa.array([b""], pa.binary()).take(pa.array(zeros))
            columns[name] = keys[place] if place < len(keys) else blank
        columns["n"] = pa.array(numbers[0], pa.int64())
        for place, name in enumerate(self.sums, 1):
            integers = numbers[place] if place < len(numbers) else zeros
            if integers.dtype == object:
                columns[name] = pa.array(map(Decimal, integers.tolist()), _SUM)
            else:
                columns[name] = pa.array(integers, pa.int64()).cast(pa.decimal128(19, 0)).cast(_SUM)
        batch = pa.record_batch(columns)
        for start in range(0, n_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def without_keys(lattice: Lattice) -> Packing:
    """Give how the cells of the axes that have no keys are packed."""
    return Packing(Lattice(tuple(axis for axis in lattice.axes if not axis.has_keys)))


def _named(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{place}" for place in range(count))


# --- tasks --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ScanTask:
    """Counts the rows of a part of the table: what ``mapInArrow`` is given.

    Attributes
    ----------
    scan : Scan
    names : tuple of str
        The names of the columns that come, but for the bucket, which is last.
    """

    scan: Scan
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the counted cells, and which buckets of persons were seen."""
        seen = np.zeros(BUCKETS, np.int64)

        def arrived() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                columns = batch.columns
                if self.scan.unit.person is not None:
                    buckets = columns.pop()
                    if buckets.null_count:
                        raise InternalError(
                            "The session has a function of its own named hash or pmod."
                        )
                    seen[buckets.to_numpy()] = 1
                yield pa.RecordBatch.from_arrays(columns, names=list(self.names))

        counted = CountedColumns.of(self.scan.needs)
        for need, cube in enumerate(cubes_of_pieces(self.scan, [arrived])):
            yield from counted.batches(need, *_rows_of(cube))
        (buckets,) = np.nonzero(seen)
        nothing = pa.array([b""] * len(buckets), pa.binary())
        no_keys = [nothing] * len(counted.keys)
        yield from counted.batches(OF_BUCKETS, [buckets], no_keys, [seen[buckets]])


def _rows_of(cube: Cube) -> tuple[list[Array], list[pa.Array], list[Array]]:
    """Give the occupied cells of a cube: packed cells, keys as bytes; counts and sums."""
    if cube.coordinates is None:
        (occupied,) = np.nonzero(cube.counts)
        packed = [occupied]
        keys = []
    else:
        occupied = np.arange(len(cube.counts))
        axes = enumerate(cube.lattice.axes)
        plain = [cube.coordinates[:, place] for place, axis in axes if not axis.has_keys]
        packed = without_keys(cube.lattice).pack(plain, len(occupied))
        keys = [
            as_bytes(cube.keys[cube.lattice.axes[place].name].take(cube.coordinates[:, place]))
            for place in cube.lattice.keyed
        ]
    sums = () if cube.sums is None else cube.sums[occupied].T
    return packed, keys, [cube.counts[occupied], *sums]


def as_bytes(keys: Sequence[Label]) -> pa.Array:
    """Write keys of one type, so that different ones stay apart."""
    listed = pa.array(keys)
    if pa.types.is_boolean(listed.type):
        listed = listed.cast(pa.int8())
    return listed.cast(pa.string()).cast(pa.binary())


def of_bytes(written: pa.Array, type_: pa.DataType) -> pa.Array:
    """Read keys that ``as_bytes`` wrote; ``type_`` is that of their column."""
    texts = written.cast(pa.large_string())
    if pa.types.is_boolean(type_):
        return texts.cast(pa.int8()).cast(pa.bool_())
    return texts.cast(pa.int64()) if pa.types.is_integer(type_) else texts


@dataclass(frozen=True, repr=False)
class SelectionTask:
    """Shows the keys that a rule selects. It holds the secret of the rule, and nothing large.

    Attributes
    ----------
    rule : KeyRule
    key_type : pyarrow.DataType
        That of the column of keys.
    """

    rule: KeyRule
    key_type: pa.DataType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the groups of the keys that are shown.

        A group without a key is a bucket of persons that two tasks saw: it is an InternalError.
        """
        for shown in self.rule.shown_of(map(self._read, batches)):
            written = as_bytes(shown[KEY].to_pylist())
            yield shown.set_column(shown.schema.get_field_index(KEY), KEY, written)

    def _read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch[KEY].null_count:
            raise InternalError(IN_TWO_TASKS)
        keys = of_bytes(batch[KEY], self.key_type)
        return batch.set_column(batch.schema.get_field_index(KEY), KEY, keys)


# --- what comes back ----------------------------------------------------------------------------


def cubes_of(scan: Scan, counted: pa.Table, key_types: dict[str, pa.DataType]) -> list[Cube]:
    """Make the cube of each need of what the tasks counted together.

    Parameters
    ----------
    scan : Scan
    counted : pyarrow.Table
        The columns of ``CountedColumns``, with each cell once.
    key_types : dict of str to pyarrow.DataType
        The type of each column of keys.

    Raises
    ------
    InternalError
        If rows of one bucket of persons were counted in two tasks: the limits on a person's rows
        would not hold. It says no more, since which persons these are is private.
    """
    columns = CountedColumns.of(scan.needs)
    needs = counted["need"].to_numpy()
    of_buckets = counted.filter(pa.array(needs == OF_BUCKETS))
    if (of_buckets["n"].to_numpy() > 1).any():
        raise InternalError(IN_TWO_TASKS)
    return [
        _cube_of(need, columns, counted.filter(pa.array(needs == place)), key_types)
        for place, need in enumerate(scan.needs)
    ]


def _cube_of(
    need: Needs, columns: CountedColumns, rows: pa.Table, key_types: dict[str, pa.DataType]
) -> Cube:
    """Make the cube of one need of its counted cells, in any order."""
    lattice = need.lattice
    packing = without_keys(lattice)
    packed = _packed_cells(rows.select(columns.packed).columns, packing)
    counts = rows["n"].to_numpy()
    sums = _sums(need, rows.select(columns.sums).columns, int(counts.sum()))
    summed = tuple(summand.axis for summand in need.sums)
    if lattice.size <= DENSE_LIMIT:
        dense = _scattered(counts, packed[0], lattice.size)
        dense_sums = None if sums is None else _scattered(sums, packed[0], lattice.size)
        return Cube(lattice, dense, sums=dense_sums, summed=summed)
    keys: dict[str, KeyColumn] = {}
    indices: dict[int, Array] = {}
    for column, (place, name) in zip(columns.keys, lattice.keyed.items(), strict=False):
        key_type = key_types[lattice.axes[place].column_name]
        numbers = KeyNumbers()
        numbers_of_rows = numbers.cells(of_bytes(rows[column].combine_chunks(), key_type))
        indices[place] = numbers.ranks()[numbers_of_rows]
        keys[name] = numbers.sorted
    plain = iter(packing.unpack(packed).T if packing.lattice.axes else ())
    cells = [
        indices[place] if place in indices else next(plain) for place in range(len(lattice.axes))
    ]
    coordinates = np.stack(cells, axis=1).reshape(len(counts), len(cells))
    # ``lexsort`` goes by its last key first: reversed, cells stand in the order of the axes.
    order = np.lexsort(coordinates.T[::-1])
    in_order = None if sums is None else np.ascontiguousarray(sums[order])
    return Cube(lattice, counts[order], coordinates[order], keys, in_order, summed)


def _packed_cells(columns: Sequence[pa.ChunkedArray], packing: Packing) -> list[Array]:
    """Return the packed cells of counted rows, all of which the lattice must have."""
    packed = [column.to_numpy() for column in columns[: len(packing.groups)]]
    for integers, size in zip(packed, packing.sizes, strict=True):
        if len(integers) and not (integers.min() >= 0 and integers.max() < size):
            raise InternalError("Spark counted a cell that the lattice does not have.")
    return packed


def _scattered(numbers: Array, cells: Array, size: int) -> Array:
    """Return the numbers of all cells of a lattice, given those of some."""
    dense = np.zeros((size, *numbers.shape[1:]), numbers.dtype)
    dense[cells] = numbers
    return dense


def _sums(need: Needs, columns: Sequence[pa.ChunkedArray], n_counted: int) -> Array | None:
    """Give the sums: of int64, or of Python's integers just where a scan would use these."""
    if not need.n_sums:
        return None
    columns = columns[: need.n_sums]
    if not sums_may_overflow(need.sums, n_counted):
        return np.stack([column.cast(pa.int64()).to_numpy() for column in columns], axis=1)
    wide = [[int(number) for number in column.to_pylist()] for column in columns]
    return np.array(wide, object).T
