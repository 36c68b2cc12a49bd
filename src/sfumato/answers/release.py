"""What every answer is: noisy values, their error law, guarantee and receipt, and nothing unpaid.

Releases are values: they travel as JSON and can be rebuilt from it bit for bit. What is true of
several answers is said once, with the answers that it is true of.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

import msgspec
import numpy as np

from sfumato.answers import frames
from sfumato.answers.captions import Captions
from sfumato.answers.details import Details, names_in_details
from sfumato.answers.estimate import error_probability, reach_text, to_meaningful_digits
from sfumato.answers.receipt import LATER, Receipt
from sfumato.basics import (
    Array,
    Exactly,
    ExplainedStruct,
    Kind,
    Table,
    card,
    grid,
    line,
    paragraph,
    plain,
    sidak,
    text_grid,
    to_bytes,
    write_bytes,
)
from sfumato.errors import UsageError, explained_methods, not_saved, printable
from sfumato.mechanisms import CountLaw
from sfumato.privacy import CentralMeasure, Guarantee, MetricDP

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes

    from sfumato.answers.cross_tables import CrossTable

R = TypeVar("R", bound="Release")

ROWS_SHOWN = 8
STORED = "This is the stored answer; nothing was spent for it again."
LOADED = "It was read from a file, which anyone may have edited: sfumato verify checks it."


@explained_methods
class Release(ExplainedStruct, frozen=True, kw_only=True, eq=False, dict=True):
    """The answer to a question: noisy numbers, their guarantee, and how accurate they are.

    ``Publisher.release`` returns one, and ``sf.load`` reads one from a file. What you do with it
    after that costs nothing.

    Attributes
    ----------
    guarantee : Guarantee
        Measure, unit, mechanism, proof, assumptions, and which rows are counted. Print it.
    receipt : Receipt or None
        Which account paid, when, and how much.
    captions : Captions or unset
        The question's words for people: see ``for_people``.

    Notes
    -----
    A subclass is a frozen msgspec Struct with a ``tag`` of its own, which names it in files, and
    ``forbid_unknown_fields=True``. Its fields hold what was paid for; everything else follows from
    them. It says what its ``values`` are and gives a ``title``. ``accuracy``, ``to_frame`` and
    ``plot`` are its own choice: a page leaves out what a release does not have. Everything that
    pages, pictures, the command line and the audit ask of a release is declared here.

    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.array([[1.0], [3.0]]), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> release = sf.Publisher(src, budget="1").release(sf.Histogram("x", bins=4), epsilon="1")
    >>> release
    <HistogramRelease: Histogram of x; epsilon = 1>
    >>> release.accuracy(confidence="0.95")  # half-widths: each count is within +-3 of the truth
    array([3, 3, 3, 3])
    >>> low, high = release.interval(confidence="0.95", simultaneous=True)
    >>> release.to_frame().column_names
    ['x', 'x_lower', 'x_upper', 'count', 'low', 'high']
    """

    # What becomes of an answer after it was given is not part of it: it is kept in ``__dict__``,
    # which is neither stored nor compared.

    guarantee: Guarantee
    receipt: Receipt | None = None
    captions: Captions | msgspec.UnsetType = msgspec.UNSET

    noun: ClassVar[str] = "number"
    """What each of ``values`` is called: what the accuracy is of."""

    measured_against: ClassVar[str] = "of the truth"
    """What the accuracy is measured against, as in "within +-5 of the truth"."""

    spare_digits: ClassVar[int] = 0
    """How many digits are printed beyond those that an interval leaves to its estimate."""

    amounts: ClassVar[frozenset[str]] = frozenset(
        {
            *("count", "low", "high", "rows", "persons", "total", "sum", "above", "rank_error"),
            *("affected", "affected_low", "affected_high"),
        }
    )
    """The columns of ``to_frame`` that hold counts and sums; thousands are parted in them."""

    _in_details: ClassVar[frozenset[str]] = frozenset(
        {
            *("about", "against", "amounts", "arranged", "as_of", "captions", "cost"),
            *("cross_tables", "facts", "for_people", "has_picture", "has_table", "in_digits"),
            *("kind_of_column", "label_columns", "layout", "listed", "loaded", "members"),
            *("measured_against", "noun", "numbers", "parts", "spare_digits", "states_accuracy"),
            "unknowns",
        }
    )
    """The names that ``dir`` leaves to ``details``; a subclass adds its own."""

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__()} - names_in_details(type(self)))

    @property
    def details(self) -> Details:
        """What pages, pictures and other tools need of it: see ``dir(release.details)``."""
        return Details(self, self.title, names_in_details(type(self)))

    @property
    def replayed(self) -> bool:
        """Whether this is a stored answer that was given before; then nothing was spent now."""
        return bool(self.__dict__.get("replayed"))

    @property
    def loaded(self) -> bool:
        """Whether it was read from a file, which anyone may have edited."""
        return bool(self.__dict__.get("loaded"))

    if not TYPE_CHECKING:  # type checkers know what msgspec takes here

        def __init_subclass__(cls, **settings: object) -> None:
            super().__init_subclass__(**settings)
            explained_methods(cls)

    # --- what it says of itself -------------------------------------------------------------------

    @property
    def title(self) -> str:
        """The question in a few words."""
        raise NotImplementedError

    @property
    def heading(self) -> str:
        """The title for people: the question's ``heading``, or else ``title``."""
        given = "" if self.captions is msgspec.UNSET else self.captions.heading
        return given or self.title

    @property
    def layout(self) -> tuple[str, ...]:
        """The axes along which it is laid out, if it can be laid out in another order."""
        return ()

    def arranged(self, axes: Sequence[str]) -> Self:
        """The same numbers, laid out along the axes in this order.

        Nothing changes if these are not its axes, or if the order matters to the answer.
        """
        names = self.layout
        if tuple(axes) == names or sorted(axes) != sorted(names):
            return self
        return self._transposed([names.index(name) for name in axes])

    def _transposed(self, order: Sequence[int]) -> Self:
        """The release with the axes of its layout in another order."""
        raise NotImplementedError

    def for_people(self) -> Self:
        """The same release with its axes and labels named as the question asks.

        Pages, pictures, notebooks and workbooks show it. Its columns have units of measure in their
        names, and its labels are the names that ``label_names`` gives them.
        """
        if self.captions is msgspec.UNSET:
            return self
        captions = self.captions
        # Named once, it is not named again; a derived title would speak of the new names.
        last = Captions(heading=self.heading)
        named = msgspec.structs.replace(self._named(captions), captions=last)
        return marked(named, replayed=self.replayed, loaded=self.loaded)

    def _named(self, captions: Captions) -> Self:
        """The release with its axes and labels under other names; a subclass names what it has."""
        return self

    @property
    def about(self) -> str:
        """Which rows it is about, in words."""
        return self.guarantee.unit.counted

    @property
    def scope(self) -> str:
        """What is counted, and what may be missing, in one sentence."""
        return f"{self.guarantee.scope} {self.as_of}".strip()

    @property
    def as_of(self) -> str:
        """A sentence on its day, where it was asked for as it is stored; "" elsewhere."""
        receipt = self.receipt
        return "" if receipt is None or not receipt.as_of else f"As of {receipt.as_of}: {LATER}."

    @property
    def unknowns(self) -> str:
        """What is not known although a number stands there, in a sentence; "" if nothing is."""
        return ""

    @property
    def facts(self) -> tuple[str, ...]:
        """What it says in sentences, for a screen or a page; none where its numbers say it all."""
        return ()

    @property
    def against(self) -> str:
        """``measured_against``, unless it depends on what was paid for."""
        return self.measured_against

    @property
    def parts(self) -> Mapping[str, Release]:
        """The releases of values that differ in scale, by name; empty if there is one scale."""
        return {}

    @property
    def members(self) -> Mapping[str, Release]:
        """The tables of a family that adds up, by name; empty if it is none."""
        return {}

    @property
    def cross_tables(self) -> Mapping[tuple[str, ...], tuple[CrossTable, ...]]:
        """Tables of counts with their sums on the edges, by their axes; empty if it has none.

        Only answers that add up have them. A table that cannot be laid out so has an empty tuple.
        """
        return {}

    def listed(self, axes: tuple[str, ...]) -> pa.Table:
        """One of the ``cross_tables`` as ``to_frame`` has it, one row for each number."""
        raise NotImplementedError

    @property
    def cost(self) -> CentralMeasure:
        """What was spent for it: its guarantee, which is that of a trusted curator."""
        measure = self.guarantee.measure
        if isinstance(measure, MetricDP):
            raise not_saved(self.title, "its guarantee is one of local reports")
        return measure

    # --- numbers ----------------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """The released numbers, before any post-processing."""
        raise NotImplementedError

    def numbers(self) -> tuple[int, ...]:
        """The published integers that noise was added to, in the order in which it was drawn.

        An exact audit replays them. They are the ``values``, unless a subclass says otherwise.
        """
        values = np.asarray(self.values)
        if values.dtype.kind not in "iu":
            raise UsageError(
                f"the numbers of a {type(self).__name__}",
                "its values are not whole: noise was added to others, which they follow from",
                "Let its class say them in numbers()",
            )
        return tuple(values.reshape(-1).tolist())

    @property
    def states_accuracy(self) -> bool:
        """Whether it has intervals: whether its class implements ``accuracy``."""
        return type(self).accuracy is not Release.accuracy

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """Half-widths of the intervals, like ``values``.

        Parameters
        ----------
        confidence : number in (0, 1)
            The probability with which an interval holds the value without noise.
        simultaneous : bool
            False: each interval holds with this confidence. True: all hold together with it (Sidak;
            the noise is independent).
        """
        raise NotImplementedError

    def interval(
        self,
        confidence: Exactly = "0.95",
        simultaneous: bool = False,
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, each like ``values``.

        The noise is unbiased and nothing is clipped.
        """
        half = self.accuracy(confidence, simultaneous)
        return self.values - half, self.values + half

    # --- forms ------------------------------------------------------------------------------------

    @property
    def has_table(self) -> bool:
        """Whether it can be laid out as a table: whether its class implements ``to_frame``."""
        return type(self).to_frame is not Release.to_frame

    def to_frame(self) -> pa.Table:
        """One row per released number.

        An Arrow table: ``.to_pandas()``, ``polars.from_arrow`` and DuckDB take it as it is. So do
        they take the release itself: ``pl.DataFrame(release)``, ``pa.table(release)`` and
        ``pd.DataFrame.from_arrow(release)``.
        """
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """``to_frame`` as a stream of Arrow: what makes a frame of a release takes it so."""
        return self._table("an Arrow stream").__arrow_c_stream__(requested_schema)

    def in_digits(self, table: pa.Table) -> pa.Table:
        """A table like ``to_frame``, with the digits that people need: see ``answers.estimate``."""
        return to_meaningful_digits(table, self.spare_digits)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of ``to_frame`` that hold labels, which are printed as they are."""
        return self.layout

    def kind_of_column(self, name: str) -> Kind:
        """What a column of ``to_frame`` holds: amounts, values of an axis, or labels."""
        if name in self.label_columns:
            return "label"
        return "amount" if name in self.amounts else "value"

    def to_pandas(self) -> pd.DataFrame:
        """``to_frame`` as a pandas frame; labels and bins are categories.

        Raises
        ------
        UsageError
            If pandas is not installed, or the release has no table.
        """
        return frames.to_pandas(self._named_table("to_pandas()"))

    def to_polars(self) -> pl.DataFrame:
        """``to_frame`` as a polars frame; labels and bins are categories.

        Raises
        ------
        UsageError
            If polars is not installed, or the release has no table.
        """
        return frames.to_polars(self._named_table("to_polars()"))

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write ``to_frame`` as CSV in UTF-8, and return the path.

        Estimates have the digits that their intervals leave to them, and the ends of intervals are
        rounded outwards: ``to_frame`` has all digits.
        A label that a spreadsheet program would run as a formula gets an apostrophe before it.

        Raises
        ------
        DataError
            If the file cannot be written.
        UsageError
            If the release has no table.
        """
        return write_bytes(path, frames.to_csv(self.in_digits(self._named_table("to_csv()"))))

    def to_excel(self, path: str | os.PathLike[str]) -> Path:
        """Write an Excel workbook, and return its path.

        The sheet "Answer" has the numbers with their intervals. The sheet "Guarantee" says in words
        what is promised, how accurate the numbers are and which account paid. A family of tables
        has a sheet for each table, with its sums on the edges.

        Raises
        ------
        DataError
            If the file cannot be written.
        UsageError
            If xlsxwriter is not installed (``pip install 'sfumato[excel]'``), the release has no
            table, or its table has more rows than a sheet.
        """
        from sfumato.answers import workbooks

        people = self.for_people()
        table = people._table("to_excel()")
        receipt = self.receipt
        # No clock is read: when the numbers were written would tell how long the data took.
        made = None if receipt is None else receipt.date
        if crossed := people.cross_tables:
            content = workbooks.family_to_excel(
                crossed, people.listed, self.scope, self._about(), made
            )
        else:
            content = workbooks.to_excel(
                table, self.kind_of_column, self.scope, self._about(), made
            )
        return write_bytes(path, content)

    def _table(self, request: str) -> pa.Table:
        """``to_frame``, for another form of it."""
        if not self.has_table:
            raise UsageError(f"{request} of {self.title}", "it has no table", "Read its values")
        return self.to_frame()

    def _named_table(self, request: str) -> pa.Table:
        """The table, with names of labels beside the labels, which other tables may be joined by.

        Heading and units of measure are in its metadata.
        """
        table = self._table(request)
        if self.captions is msgspec.UNSET:
            return table
        return frames.with_names(
            table, self.for_people().to_frame(), self.label_columns, self.captions
        )

    def _about(self) -> list[tuple[str, str]]:
        """What a reader of the numbers must know, as names and sentences."""
        lines = [("Answer", self.heading), ("Question", self.title)]
        lines += [("Result", fact) for fact in self.facts]
        if said := accuracy_sentence(self):
            lines.append(("Accuracy", said))
        for sentence in str(self.guarantee).splitlines():
            heading, _, text = sentence.partition(": ")
            lines.append((heading, text))
        if self.loaded:
            lines.append(("Origin", LOADED))
        receipt = self.receipt
        if receipt is None:
            return [*lines, ("Receipt", "None: this answer was not charged to an account.")]
        return [*lines, *receipt.lines()]

    def __str__(self) -> str:
        """The first rows of its table with their intervals, what it is about, and the promise."""
        table = self._first_rows()
        parts = [] if table is None else [text_grid(table)]
        return "\n".join([plain(self.heading, 200), *parts, *map(paragraph, self._sentences())])

    def _repr_html_(self) -> str:
        table = self._first_rows()
        parts = [] if table is None else [grid(table)]
        return card(self.heading, *parts, *map(line, self._sentences()))

    def _first_rows(self) -> Table | None:
        """The first rows of its table, with names for people; None if it has no table."""
        if not self.has_table:
            return None
        people = self.for_people()
        table = frames.without_edges(people.in_digits(people.to_frame()))
        return frames.first_rows(table, ROWS_SHOWN, self.kind_of_column)

    def _sentences(self) -> list[str]:
        """What is said below the first rows: how accurate they are, and what is promised."""
        sentences = [f"Question: {self.title}."] if self.heading != self.title else []
        sentences += [STORED] if self.replayed else []
        sentences += [self.as_of] if self.as_of else []
        sentences += [LOADED] if self.loaded else []
        sentences += self.facts
        said = accuracy_sentence(self)
        return [*sentences, *([said] if said else []), self.guarantee.sentence()]

    @property
    def has_picture(self) -> bool:
        """Whether it can be drawn: whether its class implements ``plot``."""
        return type(self).plot is not Release.plot

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the answer with its error bars on a matplotlib Axes, and return the Axes."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the release to a JSON file, and return its path; ``sf.load`` reads it back.

        Raises
        ------
        DataError
            If the file cannot be written.
        """
        return write_bytes(path, to_bytes(self), "saving to")

    def __eq__(self, other: object) -> bool:
        # By their bytes: arrays have no single truth value, and a NaN does not equal itself.
        return isinstance(other, Release) and to_bytes(self) == to_bytes(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(to_bytes(self))

    def __repr__(self) -> str:
        stamp = "" if self.guarantee.private else "; NOT PRIVATE"
        stamp += "; stored answer, nothing spent" if self.replayed else ""
        stamp += f"; as of {self.receipt.as_of}" if self.receipt and self.receipt.as_of else ""
        return f"<{type(self).__name__}: {self.title}; {self.guarantee.measure}{stamp}>"


class CountsRelease(Release, frozen=True, kw_only=True, eq=False):
    """Whole counts, each with integer noise of its own added to it.

    Subclasses hold the counts and the law of their noise.

    >>> import sfumato as sf
    >>> from sfumato.extending import CountsRelease
    >>> issubclass(sf.HistogramRelease, CountsRelease), issubclass(sf.MeanRelease, CountsRelease)
    (True, False)
    """

    _in_details: ClassVar[frozenset[str]] = frozenset({"noise"})

    noun: ClassVar[str] = "count"

    @property
    def counts(self) -> Array:
        """The counts: ndarray of shape (cells,). They may be negative."""
        raise NotImplementedError

    @property
    def noise(self) -> CountLaw | None:
        """The widest law of the noise on a count, independent of that on others.

        None where the noise decided which counts are here: sums of them have no law then.
        """
        raise NotImplementedError

    @property
    def values(self) -> Array:
        """The counts."""
        return self.counts

    def numbers(self) -> tuple[int, ...]:
        """The counts, in the order in which their noise was drawn."""
        return tuple(self.counts.tolist())

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """Half-widths like ``values``, by the law of the noise; see ``Release.accuracy``."""
        noise = self.noise
        if noise is None:
            raise NotImplementedError
        alpha = error_probability(confidence)
        # The draws are independent, so all intervals hold together by Sidak's correction.
        return np.full(
            self.values.shape,
            noise.half_width(sidak(alpha, self.values.size) if simultaneous else alpha),
        )


def accuracy_sentence(release: Release) -> str | None:
    """How accurate a release is, and of which rows; None where it states no intervals."""
    if not release.states_accuracy:
        return None
    if release.parts:
        # Half-widths of different scales would say nothing side by side.
        sentences = {name: accuracy_sentence(part) for name, part in release.parts.items()}
        return (
            " ".join(f"{printable(name)}: {said}" for name, said in sentences.items() if said)
            or None
        )
    single = np.asarray(release.accuracy("0.95", False), float)
    every = np.asarray(release.accuracy("0.95", True), float)
    if not np.isfinite(single).any():
        return None
    reach = f"{reach_text(single)} {release.against}"
    sentence = f"Of {release.about}, each {release.noun} is within {reach} with 95% confidence"
    sentence += (
        f"; all {single.size:,} at once within {reach_text(every)}." if single.size > 1 else "."
    )
    return f"{sentence} {release.unknowns}".rstrip()


def family_accuracy(release: Release) -> str | None:
    """How accurate all tables of a family are; None unless there are several."""
    if len(release.members) < 2:
        return None
    reach = reach_text(np.asarray(release.accuracy("0.95"), float))
    return (
        f"Of {release.about}, each {release.noun} before rounding is within {reach} "
        f"{release.against} with 95% confidence; what holds for each table stands above it."
    )


def marked(release: R, **marks: bool) -> R:
    """The same release, with a mark of what became of it: ``replayed`` or ``loaded``."""
    release.__dict__.update(marks)
    return release


def with_receipt(release: R, **changes: str) -> R:
    """The same release with other words in its receipt; without a receipt as it is."""
    if release.receipt is None:
        return release
    receipt = msgspec.structs.replace(release.receipt, **changes)
    return msgspec.structs.replace(release, receipt=receipt)


# --- what is true of several answers --------------------------------------------------------------


def which_answers(together: Sequence[int], number: int) -> str:
    """Name answers of a plan, by their places from 0 on, as the subject of a sentence.

    >>> which_answers([0, 2, 3], 4), which_answers([1], 4), which_answers([0, 1], 2)
    ('Answers 1, 3 and 4', 'Answer 2', 'Each of the 2 answers')
    """
    if len(together) == number:
        return f"Each of the {number:,} answers"
    *others, last = [f"{at + 1:,}" for at in together]
    return f"Answers {', '.join(others)} and {last}" if others else f"Answer {last}"


def said_once(texts: Iterable[str]) -> list[str]:
    """Texts that are said of answers, each once, with the answers that it is said of.

    >>> said_once(["a", "b", "a"]), said_once(["a"]), said_once(["a", "a"])
    (['Answers 1 and 3: a', 'Answer 2: b'], ['a'], ['Each of the 2 answers: a'])
    """
    places: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        places.setdefault(text, []).append(number)
    answers = sum(map(len, places.values()))
    if answers < 2:
        return list(places)
    return [f"{which_answers(together, answers)}: {text}" for text, together in places.items()]
