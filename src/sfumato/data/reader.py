"""The interface to engines: a reader hands out the rows of a table, or counts them where they lie.

A source holds one reader. A ``RowReader`` hands out its rows as Arrow record batches, which one
scan bounds and counts. A ``CountingReader`` lets its engine bound and count. A class may be both:
then its own counting is used, and its rows serve ``sfumato check``.

The method ``of`` says which objects a class reads, and the registry (``sfumato.data.registry``)
knows the classes. ``docs/extending.md`` shows a reader in full, and
``tests/conformance/reader_contract.py`` tests what is promised here.

A reader may raise whatever its engine raises. Engines quote values of the data, so the source keeps
the kind of such an error and none of its words. A refusal with words of its own is a ``DataError``,
which depends on names and types only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

from sfumato.data.file_options import FileOptions, refuse_without_files
from sfumato.errors import UsageError
from sfumato.lattice import LatticeAxis

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.answers.counts import Needs
    from sfumato.arrays import Array
    from sfumato.cube import Cube
    from sfumato.mechanisms.key_rules import KeyRule
    from sfumato.privacy.unit import Unit

BATCH_ROWS = 2**16
"""How many rows a batch should have where the engine lets us choose."""

OPENING = "a function that opens a new one in each call"
"""What is given in the place of a reader that can be read once."""

Column: TypeAlias = LatticeAxis | None
"""The axis that a column is read as; None for the person's column, if it is no axis."""

Columns: TypeAlias = Mapping[str, Column]
"""The columns that are wanted, by name."""

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the rows done, and all rows or None: private facts, for the custodian's screen."""


@dataclass
class Losses:
    """What reading text lost: true counts, which only the custodian may see.

    Attributes
    ----------
    wrong_length : int
        Rows with another number of fields than the header.
    unended : int
        Rows that do not end in time.
    unparsed, not_utf8 : Counter of str
        Fields of each column that did not parse, and how many of them are not UTF-8.
    forms : Counter of (str, str)
        Of those fields, how many of each column have one of the forms of ``written_forms``.
    """

    wrong_length: int = 0
    unended: int = 0
    unparsed: Counter[str] = field(default_factory=Counter)
    not_utf8: Counter[str] = field(default_factory=Counter)
    forms: Counter[tuple[str, str]] = field(default_factory=Counter)


class Reader(ABC):
    """A table: its columns, their types, and a label that changes with its rows.

    Implement ``RowReader`` or ``CountingReader``, never this class alone.

    Attributes
    ----------
    name : str
        What errors and receipts call the table. It must not hold a value of the data.
    in_memory : bool
        Whether the rows may change unnoticed. Each such object is a data set of its own, unless the
        user names it.
    same_rows : str
        What is assumed of the table by a release that takes several queries or scans, where no
        snapshot holds one state for all of them; guarantees say it. Empty: nothing is. Where it
        depends on the table, ``supports`` finds it.
    read_once : bool
        Whether the rows can be read a single time. A question that may count them again is refused
        before the charge.
    has_schema : bool
        False if the names of the columns are a first line of text. That line may turn out to be
        data, so it is not quoted.
    """

    name: str
    in_memory: bool = True
    same_rows: str = ""
    read_once: bool = False
    has_schema: bool = True

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> Reader | None:
        """Read an object; return None if this class does not read objects of its kind.

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

    def written_as(self, options: FileOptions) -> Self:
        """Give the same table, written as the options say; a table that is no file has none.

        Raises
        ------
        UsageError
            If the options do not concern the table.
        """
        refuse_without_files(options)
        return self

    @abstractmethod
    def names(self) -> list[str]:
        """Give the names of the columns, each as often as it occurs."""

    @abstractmethod
    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of at least the columns asked for, which exist.

        The types must not depend on values.
        """

    def index_names(self) -> Sequence[str]:
        """Give the names of what stands beside the columns and is not read, such as an index."""
        return ()

    def parts(self) -> Sequence[Reader]:
        """Give the tables that this one is made of, or itself. Each of them must fit."""
        return [self]

    def label(self, name: str | None) -> str:
        """Give a text that identifies this state of the data: it changes when the rows do.

        With an empty text, each such object is a data set of its own.

        Parameters
        ----------
        name : str or None
            The user's own name for the data set; never None for a table in memory.
        """
        return name or ""

    def rows(self) -> int | None:
        """Give the number of rows, if it is known at once. It serves progress bars only."""
        return None

    def hints(self) -> Iterable[str]:
        """Give sentences for ``sfumato check`` on what may be wrong with the form of the table."""
        return ()

    def misreading(self) -> tuple[str, str] | None:
        """Say what in the form of the table may be why a column is not found.

        Returns
        -------
        (str, str) or None
            What stands in the way, and which option to use. It depends on the header alone.
        """
        return None

    def snapshot(self) -> AbstractContextManager[object]:
        """Keep the data in one state for all scans in this context, if the engine can.

        A database opens a read-only transaction. All counts of a release take place in one context.
        """
        return nullcontext()


class RowReader(Reader):
    """A table that hands out its rows.

    Every scan gives all rows. Their order, and how they are cut into batches, does not matter:
    which rows of a person are counted follows from the person and the rows' values.

    >>> from sfumato.extending import RowReader
    >>> sorted(RowReader.__abstractmethods__)
    ['batches', 'names', 'schema']
    """

    def parts(self) -> Sequence[RowReader]:
        """Give the tables that this one is made of, or itself."""
        return [self]

    @abstractmethod
    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Give all rows, with at least the columns asked for, of the types that ``schema`` says.

        Values may be in dictionary form. A value that cannot be read is null, and never an error.
        """

    def batches_noting(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        """Give all rows, and add to ``losses`` what is lost in reading text.

        A table of values loses nothing.
        """
        del losses
        return self.batches(columns)


def with_rows(reader: Reader, asked: str) -> RowReader:
    """Return the reader if it hands out rows.

    Parameters
    ----------
    reader : Reader
    asked : str
        What the rows are wanted for; the error says so.

    Raises
    ------
    UsageError
        If the reader's engine only counts.
    """
    if isinstance(reader, RowReader):
        return reader
    raise UsageError(
        f"{asked} of {reader.name}",
        "its engine counts by itself, and hands out no rows",
        "Give a file or a frame",
    )


Ability: TypeAlias = Literal["calendar", "column", "levels", "missing", "stacked", "where"]
"""What an engine may know beside the cells of columns as they are; see ``CountingReader``."""


class CountingReader(Reader):
    """A table whose engine bounds and counts the rows where they lie: only cells come back.

    Where no person's rows are cut, its cubes are those of a scan of the same rows, bit for bit.
    Where they are, the distribution is the same: of the rows that have a cell on a lattice, each
    person keeps ``unit.rows_per_person``, and every choice is equally likely. The choice follows
    from priorities that depend on that person's rows and the key alone.

    Attributes
    ----------
    abilities : frozenset of str
        What its engine knows beside columns as they are. A question that needs anything else is
        refused before the charge.

        * "column": an axis is read from ``axis.column_name``, which may not be its name.
        * "calendar": an axis with ``axis.calendar`` is derived from a column of dates or times.
        * "levels": the cells of a label axis with ``axis.parts`` take the values that these list.
        * "missing": an axis ``BinsAndMissing`` has a last cell for missing values.
        * "stacked": a person's rows are kept within ``needs.norm``, in place of ``unit.limits``.
        * "where": rows that do not satisfy ``unit.where`` are dropped before anything else.

    >>> from sfumato.extending import CountingReader
    >>> sorted(CountingReader.__abstractmethods__), CountingReader.abilities
    (['count', 'names', 'schema'], frozenset())
    """

    abilities: ClassVar[frozenset[Ability]] = frozenset()

    def supports(self, needs: Needs, unit: Unit) -> bool:
        """Whether the engine can count this; asked before anything is charged.

        As it stands: rows, under a limit on their number alone. An engine that counts persons, adds
        up values or keeps limits by cell says so here.
        """
        return needs.holds_on_other_lattices(unit) and len(unit.person_columns) <= 1

    def choosing(
        self,
        choice: Sequence[LatticeAxis],
        conditions: Sequence[tuple[LatticeAxis, Array]],
    ) -> Self:
        """Give the same table, told how rows are chosen; as it stands, itself.

        Parameters
        ----------
        choice : sequence of LatticeAxis
            By whose columns' values, together with the key, a person's rows are chosen. They are
            the same for all scans of a release, and hold all columns that any of them counts.
        conditions : sequence of pairs of LatticeAxis and bool ndarray of shape (cells,)
            What ``unit.where`` means on the declared axes: a row satisfies it if on each axis it
            has a cell for which the array is true.
        """
        del choice, conditions
        return self

    @abstractmethod
    def count(
        self,
        needs: Sequence[Needs],
        unit: Unit,
        key: bytes,
        progress: Progress | None,
    ) -> list[Cube]:
        """Count what is needed on each lattice: one cube for each need, in order.

        Parameters
        ----------
        needs : sequence of Needs
            Only such as it ``supports``.
        unit : Unit
            If ``unit.person`` is None, nobody's rows are cut. Otherwise rows without a person are
            dropped.
        key : bytes of length 32
            The secret that chooses each person's rows: the same key chooses the same rows on every
            lattice and in every run. It must not be part of a query's text, which servers log.
        progress : callable or None
        """

    def selects(self, needs: Needs, unit: Unit) -> bool:
        """Whether ``select`` is implemented for counts with an axis of keys.

        As it stands, it is not: the cube with all keys is then counted, and keys are selected from
        it. It must depend on nothing but what it is given.
        """
        del needs, unit
        return False

    def select(
        self, needs: Needs, unit: Unit, key: bytes, rule: KeyRule
    ) -> Iterable[pa.RecordBatch]:
        """Count by keys, and give the groups of the keys that a rule shows, and no others.

        The engine counts as for ``count``, in groups of a key and a cell of each other axis. The
        rule is applied to batches of groups with these columns:

        * ``key``: the key;
        * ``rows_of_key``: the count of the key in all of its cells together;
        * if there are other axes: ``rows``, the count of the group; and ``cell_0``, ``cell_1`` ...,
          its cell on each of them, by the position of the axis in ``needs.lattice``.

        It may be applied to any parts of the groups, in any order and more than once: the noise of
        a key follows from the rule and the key.

        Parameters
        ----------
        needs : Needs
            One for which ``selects`` is true. It has one axis of keys, and adds nothing up.
        unit, key
            As for ``count``.
        rule : KeyRule
            What decides, with ``rule.shown(batch)``. It can be pickled and sent to workers. It
            holds a secret, and must not be part of a query's text.

        Returns
        -------
        iterable of pyarrow.RecordBatch
            What the rule gave of all groups, each of them once.
        """
        raise NotImplementedError
