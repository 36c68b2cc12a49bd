"""The seam to engines: what reads a table, or counts it where it lies.

A source holds one reader. Either the reader hands out its rows as Arrow record batches
(``RowReader``), which one scan bounds and counts, or its engine bounds and counts by itself
(``CountingReader``). A class may be both: its own counting is then used, and its rows serve
``sfumato check``. Which objects a class reads, its method ``of`` says; the registry
(``sfumato.data.registry``) knows the classes. ``docs/extending.md`` has a worked reader, and
``tests/conformance/contract.py`` tests what is promised here.

A reader may raise whatever its engine raises: engines quote values of the data, so the source keeps
the kind of such an error and none of its words. A refusal with words of its own is a ``DataError``,
which depends on names and types only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from sfumato.errors import UsageError
from sfumato.lattice import LatticeAxis

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.answers.counts import Needs
    from sfumato.cube import Cube
    from sfumato.privacy.unit import Unit

BATCH_ROWS = 2**16
"""How many rows a batch should have where the engine lets us choose."""

Column: TypeAlias = LatticeAxis | None
"""What a column is read as: an axis; None for the person's column, where it is no axis."""

Columns: TypeAlias = Mapping[str, Column]
"""The columns that are wanted, by name."""

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the rows done, and all rows or None: private facts, for the custodian's screen."""


@dataclass
class Losses:
    """What reading text lost: true counts, for the custodian's own look at a table only."""

    wrong_length: int = 0
    unended: int = 0
    unparsed: Counter[str] = field(default_factory=Counter)
    not_utf8: Counter[str] = field(default_factory=Counter)


class Reader(ABC):
    """A table: its columns, their types, and what tells one state of it from another.

    Implement ``RowReader`` or ``CountingReader``, never this class alone.

    Attributes
    ----------
    name : str
        What errors and receipts call the table. It holds no value of the data.
    in_memory : bool
        Whether the rows may change without a trace. Each such object is a data set of its own,
        unless the user names it.
    has_schema : bool
        False where the columns are named by a first line of text, which may turn out to be data and
        is not quoted.
    """

    name: str
    in_memory: bool = True
    has_schema: bool = True

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> Reader | None:
        """Read an object; None if it is not of the kind that this class reads.

        Parameters
        ----------
        data : object
            What ``sf.source`` was given. Only its type is looked at.
        axes : sequence of str
            The names of the domain's axes, in their order.
        person : str or None
            The column that names the person.
        """
        return None

    @abstractmethod
    def names(self) -> list[str]:
        """Names of the columns, each as often as it is there."""

    @abstractmethod
    def schema(self, columns: Columns) -> pa.Schema:
        """Types of at least the columns asked for, which exist. They depend on no value."""

    def parts(self) -> Sequence[Reader]:
        """The tables that this one is made of, each of which must fit: itself, if it is one."""
        return [self]

    def label(self, name: str | None) -> str:
        """What tells this state of the data from others: it changes when the rows do.

        An empty text says nothing: each such object is then a data set of its own.

        Parameters
        ----------
        name : str or None
            The user's own name for the data set; never None for a table in memory.
        """
        return name or ""

    def rows(self) -> int | None:
        """How many rows there are, if that is known at once. It serves progress bars only."""
        return None

    def hints(self) -> Iterable[str]:
        """Sentences for ``sfumato check`` on the form of the table, where that may be a mistake."""
        return ()

    def snapshot(self) -> AbstractContextManager[object]:
        """Hold one state of the data for all scans within, where the engine can.

        A database opens a transaction that only reads. All counts of a release lie within one.
        """
        return nullcontext()


class RowReader(Reader):
    """A table that hands out its rows.

    Every scan gives all rows, in one order, however they are cut into batches. A scan numbers the
    rows as they come, and these numbers choose each person's rows: in another order a person might
    keep other rows in a second scan, and count for more than the limit.
    """

    def parts(self) -> Sequence[RowReader]:
        """The tables that this one is made of: itself, if it is one."""
        return [self]

    @abstractmethod
    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """All rows, with at least the columns asked for, of the types that ``schema`` says.

        Values may be dictionary-coded. A value that cannot be read is null, and never an error.
        """

    def batches_noting(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        """The same, adding to ``losses`` what is lost on the way from text.

        A table of values loses nothing.
        """
        del losses
        return self.batches(columns)


def with_rows(reader: Reader, asked: str) -> RowReader:
    """The reader, where it hands out rows.

    Raises
    ------
    UsageError
        If its engine only counts. ``asked`` is what the rows are wanted for.
    """
    if isinstance(reader, RowReader):
        return reader
    raise UsageError(
        f"{asked} of {reader.name}",
        "its engine counts by itself, and hands out no rows",
        "Give a file or a frame",
    )


class CountingReader(Reader):
    """A table that its engine bounds and counts where it lies: only cells come back.

    Its cubes are those of a scan of the same rows, bit for bit, wherever no person's rows are cut.
    Where they are, the law is the same: of the rows that have a cell on a lattice, each person
    keeps ``unit.rows_per_person``, every choice being equally likely, by priorities that depend on
    that person's rows and the key alone.
    """

    @abstractmethod
    def count(
        self,
        needs: Sequence[Needs],
        unit: Unit,
        key: bytes,
        progress: Progress | None,
    ) -> list[Cube]:
        """Count the rows in every cell of each lattice; the cubes have the order of the needs.

        Parameters
        ----------
        needs : sequence of Needs
        unit : Unit
            Where ``unit.person`` is None nobody's rows are cut. Rows without a person are dropped
            otherwise.
        key : bytes of length 32
            The secret that chooses each person's rows: the same rows for the same key, on every
            lattice and in every run. It is never part of a query's text, which servers log.
        progress : callable or None
        """
