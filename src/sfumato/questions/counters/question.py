"""A running total that is paid for once and published step by step: errors, question and preview.

``Errors`` says how far the totals of a stream may lie from the truth: each by itself, and all at
once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from sfumato.answers import Axes, Captioned, Preview, drawn, error_probability, half_width_text
from sfumato.basics import Array, Exactly, agreeing, decimal, require_numbers, settle, several
from sfumato.domain import Categories, Domain, Interval, Label, LabelAxis, Lattice, Listed
from sfumato.errors import UsageError, nearest, printable, require_word, shown
from sfumato.mechanisms import Law
from sfumato.privacy import (
    CentralMeasure,
    Event,
    Guarantee,
    Proof,
    PureDP,
    Unit,
    assumptions_of,
    fill_docstring,
    scope,
    stream_event,
)
from sfumato.privacy.curves import Laplace
from sfumato.questions.counters.calendar import MOST_STEPS, Calendar, DeclaredSteps, ListedSteps
from sfumato.questions.counters.increments import (
    IncrementReader,
    event_text,
    resolution_of,
    row_bounds,
)
from sfumato.questions.counters.methods import (
    COMPARED_STEPS,
    AnyMechanism,
    Contribution,
    Method,
    errors_of_all,
    mechanism_for,
)
from sfumato.questions.counters.tree import ElderTree, band

# --- errors ---------------------------------------------------------------------------------------

# How many steps are computed at a time: an array this long costs about as much as a number.
BLOCK = 512


class TotalError(NamedTuple):
    """The error of one total, in the counter's own unit.

    Attributes
    ----------
    half_width : float
        Of the total's own interval.
    band_half_width : float
        Of the interval that holds together with those of all other steps and categories.
    deviation : float
        Standard deviation.
    law : str
        The error distribution in words.
    """

    half_width: float
    band_half_width: float
    deviation: float
    law: str


def half_widths(
    mechanism: AnyMechanism, first: int, last: int, alpha: float, simultaneous: bool
) -> Array:
    """Return the half-widths after steps ``first`` to ``last``, in units of the resolution.

    Parameters
    ----------
    mechanism : ElderTree, ToeplitzCounter, BufferCounter or Segments
    first, last : int
        From 1 on; both are included.
    alpha : float
        The probability with which an interval may miss the truth.
    simultaneous : bool
        The intervals of all steps of the horizon and of all categories hold together.

    Returns
    -------
    float64 ndarray of shape (last - first + 1,)
    """
    if not simultaneous:
        return mechanism.half_widths(first, last, alpha)
    if isinstance(mechanism, ElderTree):
        return band(mechanism, first, last, alpha)
    # The union bound holds although the errors of neighbouring steps are correlated.
    if mechanism.horizon is not None:
        return mechanism.half_widths(first, last, alpha / (mechanism.horizon * mechanism.cells))
    # Without a horizon, step t gets the share 1 / (t (t + 1)); these add up to 1 over all time.
    steps = np.arange(first, last + 1, dtype=float)
    return mechanism.half_widths(first, last, alpha / (steps * (steps + 1) * mechanism.cells))


class Errors:
    """The error of each total of a stream, in the counter's own unit.

    Parameters
    ----------
    mechanism : ElderTree, ToeplitzCounter, BufferCounter or Segments
    resolution : Fraction
        The unit in which the mechanism counts.
    alpha : float
        The probability with which an interval may miss the truth.
    """

    def __init__(self, mechanism: AnyMechanism, resolution: Fraction, alpha: float) -> None:
        self._mechanism = mechanism
        self._resolution = resolution
        self._alpha = alpha
        # One attribute holds both, so that another thread or an interrupt never sees them apart.
        self._cached: tuple[int, list[TotalError]] = (-BLOCK, [])

    def at(self, step: int) -> TotalError:
        """Return the error of the total after one step."""
        start, block = self._cached
        if not start <= step < start + BLOCK:
            start = step - (step - 1) % BLOCK
            mechanism = self._mechanism
            last = start + BLOCK - 1
            if mechanism.horizon is not None:
                last = min(last, mechanism.horizon)
            own, together = (
                self._scaled(half_widths(mechanism, start, last, self._alpha, simultaneous))
                for simultaneous in (False, True)
            )
            deviations = np.sqrt(mechanism.variances(start, last)) * float(self._resolution)
            unit = "" if self._resolution == 1 else f", in units of {decimal(self._resolution)}"
            columns = zip(
                own, together, deviations.tolist(), mechanism.laws(start, last), strict=True
            )
            block = [
                TotalError(half_width, band_half_width, deviation, law + unit)
                for half_width, band_half_width, deviation, law in columns
            ]
            self._cached = (start, block)
        return block[step - start]

    def _scaled(self, halves: Array) -> list[float]:
        """Convert to the counter's unit; whole numbers stay integers where the resolution is 1."""
        if self._resolution != 1:
            scaled: list[float] = (halves * float(self._resolution)).tolist()
            return scaled
        return [int(half) if half.is_integer() else half for half in halves.tolist()]


# --- the question ---------------------------------------------------------------------------------

MOST_CELLS = 2**16
METHODS = ("auto", "tree", "toeplitz", "blt")


@fill_docstring
class Counter(
    Captioned, frozen=True, tag="counter", omit_defaults=True, forbid_unknown_fields=True
):
    """How many so far? A running total, of events or of clamped values, published after every step.

    A counter is opened, not released. ``publisher.open(counter, epsilon=..., key=...)`` pays once
    for all steps and returns a stream.

    Parameters
    ----------
    horizon : int, Calendar, list of str or None
        How many steps there will be, at most 10^7; or which: a ``Calendar`` of dates, or a list of
        names. Declared steps are all published, whether or not rows lie in them, and rows outside
        them are not counted. None: any number of steps. Totals are then less accurate, since one
        tree follows another, each three times as long.
    value : 1 or Interval
        1: events are counted. An Interval: values are added up. They are clamped to the Interval
        and rounded to its step, or to 2^-16 of its width.
    by : str, Categories or None
        One total per category: the name of a Categories axis of the domain, or the categories.
    method : {"auto", "tree", "toeplitz", "blt"}
        A tree with Laplace noise; under rho or with delta also Gaussian noise with a square-root
        Toeplitz matrix (up to 1,024 steps) or a buffered one. "auto": the method whose largest
        variance over the horizon is smallest.
    late : {"refuse", "count"}
        What happens to an event whose name comes before the last one's: it is refused, or counted
        at the present step. With a calendar, a step that is published takes no more rows.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If a parameter is wrong.

    Guarantee
    ---------
    {proof}

    >>> from sfumato.privacy.measures import PureDP
    >>> preview = Counter(horizon=365).preview(None, Unit(), PureDP("1"))
    >>> print(preview)  # doctest: +NORMALIZE_WHITESPACE
    Running total of events at epsilon = 1,
      for any one person contributing at most one row, added or removed:
      by an elder tree of 2 levels (radices 21) with discrete Laplace noise of scale 2 on each draw
      of the rows counted, each of 365 totals is within +-29 of the truth with 95% confidence
      all of them at once are within +-50
      anyone 1% sure that a person is in the data can become at most 2.68% sure
    """

    horizon: int | Calendar | tuple[str, ...] | None
    value: int | Interval = 1
    by: str | Categories | None = None
    method: Method = "auto"
    late: Literal["refuse", "count"] = "refuse"

    proof: ClassVar[Proof] = Proof(
        sensitivity=(
            "what one person's rows add up to, at most rows_per_person times the largest value, "
            "wherever and whenever they come."
        ),
        because=(
            "each step publishes integers only, by a machine whose proof is in its module: a "
            "Laplace tree in which each row lies under one draw per level, or a Toeplitz matrix "
            "with entries on the lattice of the Gaussian noise. It holds for increments chosen "
            "after seeing earlier totals."
        ),
        not_covered=(
            "how many steps there were, when, and the names of events (with a calendar: when each "
            "was published); the state at rest, which is secret; an older copy of the ledger put "
            "back, which would draw new noise for old steps."
        ),
        source=(
            "Dwork, Naor, Pitassi, Rothblum 2010; Andersson, Pagh, Steiner, Torkamani 2025; "
            "Fichtenberger, Henzinger, Upadhyay 2023; Dvijotham et al. 2024."
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        horizon: object = self.horizon
        if isinstance(horizon, list | tuple):
            msgspec.structs.force_setattr(self, "horizon", tuple(map(event_text, horizon)))
        self._check_horizon(horizon)
        if self.late == "count" and not isinstance(self.horizon, int | None):
            raise UsageError(
                'late="count" with a calendar',
                "a step that is published takes no more rows",
                "Leave late out, or give a number of steps",
            )
        self._check_value()
        if not isinstance(self.by, str | Categories | None) or self.by == "":
            raise UsageError(
                f"by of type {type(self.by).__name__}",
                "it is neither the name of an axis nor Categories",
                'Write by="origin", or by=sf.Categories(["a", "b"])',
            )
        require_word(self.method, "method", METHODS)
        require_word(self.late, "late", ("refuse", "count"))
        settle(self)

    def _check_horizon(self, given: object) -> None:
        if isinstance(given, bool) or not isinstance(given, list | tuple | Calendar | int | None):
            raise _no_horizon(given)
        if self.steps is not None and not 1 <= self.steps <= MOST_STEPS:
            raise _no_horizon(given)

    def _check_value(self) -> None:
        value: object = self.value
        if isinstance(value, Interval):
            known = value.time is None
        else:
            known = isinstance(value, int) and not isinstance(value, bool) and value == 1
        if not known:
            raise UsageError(
                "the value of a counter",
                "it is neither 1 nor an Interval of numbers",
                "Write value=1 to count events, or value=sf.Interval(0, 10) for clamped sums",
            )

    @property
    def calendar(self) -> DeclaredSteps | None:
        """The steps, if they were declared."""
        if isinstance(self.horizon, tuple):
            return ListedSteps(self.horizon)
        return self.horizon if isinstance(self.horizon, Calendar) else None

    @property
    def steps(self) -> int | None:
        """The largest number of steps; None: any number."""
        calendar = self.calendar
        if calendar is not None:
            return len(calendar)
        return self.horizon if isinstance(self.horizon, int) else None

    @property
    def interval(self) -> Interval | None:
        """The Interval whose values are added up; None where events are counted."""
        return self.value if isinstance(self.value, Interval) else None

    @property
    def title(self) -> str:
        """What is counted, and by what."""
        what = "events"
        if self.interval is not None:
            what = f"values from {self.interval.lower} to {self.interval.upper}"
        if self.by is None:
            return f"Running total of {what}"
        by = printable(self.by) if isinstance(self.by, str) else "category"
        return f"Running total of {what} by {by}"

    def settle(self, domain: Domain | None, unit: Unit, cost: CentralMeasure) -> Settled:
        """Fix all that is public: categories, resolution, mechanism and cost. Touches no data."""
        axis = self._axis(domain)
        labels = None if axis is None else tuple(axis.all_labels)
        cells = 1 if labels is None else len(labels)
        if cells > MOST_CELLS:
            raise UsageError(
                self.title,
                f"it would have {cells:,} categories, and the limit is {MOST_CELLS:,}",
                "Take fewer",
            )
        if labels is not None and self.steps is not None:
            require_numbers(f"{self.title} over {self.steps:,} steps", self.steps * cells)
        resolution = resolution_of(self.interval)
        contribution = Contribution(unit, row_bounds(self.interval, resolution))
        # The cost that is used may be less than the one given: a tree needs no delta.
        mechanism, used = mechanism_for(self.method, self.steps, cells, contribution, cost)
        return Settled(
            counter=self,
            mechanism=mechanism,
            cost=used,
            unit=unit,
            resolution=resolution,
            axis=self.by if isinstance(self.by, str) else "category",
            labels=labels,
            other=axis is not None and axis.other is not None,
        )

    def _axis(self, domain: Domain | None) -> Listed | None:
        if not isinstance(self.by, str):
            return self.by
        known = {} if domain is None else domain.of_kind(Listed)
        if self.by in known:
            return known[self.by]
        raise UsageError(
            f"by = {shown(self.by)}",
            f"the domain has no axis of labels of that name; {nearest(self.by, known)}",
            "Name one",
        )

    def preview(
        self, domain: Domain | None, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> CounterPreview:
        """Return how accurate the totals would be over the horizon. Touches no data."""
        settled = self.settle(domain, unit, cost)
        steps = COMPARED_STEPS if self.steps is None else self.steps
        return CounterPreview(
            self.title,
            settled.cost,
            unit,
            steps * settled.mechanism.cells,
            rows=rows,
            mechanism=settled.mechanism,
            resolution=settled.resolution,
            settled=settled,
            contribution=row_bounds(self.interval, settled.resolution),
        )


class Settled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A counter with all that is public about its stream.

    It is stored with the charge, so that a later version continues the stream as it began.

    Attributes
    ----------
    counter : Counter
    mechanism : ElderTree, ToeplitzCounter, BufferCounter or Segments
        Stored as ``machine``.
    cost : PureDP, ApproxDP or ZCDP
    unit : Unit
    resolution : Fraction
        The unit in which outputs are counted; stored as ``grain``.
    axis : str
        The name of the categories.
    labels : tuple, or None
    other : bool
        The last label takes every value that is not listed.
    """

    counter: Counter
    mechanism: AnyMechanism = msgspec.field(name="machine")
    cost: CentralMeasure
    unit: Unit
    resolution: Fraction = msgspec.field(name="grain")
    axis: str
    labels: tuple[Label, ...] | None
    other: bool

    @property
    def categories(self) -> Lattice:
        """The categories as the cells of a lattice; without axes where there are none."""
        return Lattice(() if self.labels is None else (LabelAxis(self.axis, self.labels),))

    @property
    def event(self) -> Event:
        """What the whole stream draws, told to the worst adaptive user; charged at its opening.

        Holds because: a person's rows change fresh draws of an elder tree by at most their sum on
        each level, whatever was chosen after which output (``counters.tree``). Under replace what
        leaves and what comes are of one sign each, unless values are of both signs.
        """
        if not isinstance(self.mechanism, ElderTree) or not isinstance(self.cost, PureDP):
            return stream_event(self.cost)
        contribution = Contribution(self.unit, row_bounds(self.counter.interval, self.resolution))
        relation = 2 if self.unit.neighbours == "replace" and not contribution.signed else 1
        law = Laplace(contribution.l1 // relation, self.mechanism.law.scale)
        return Event.gathered([(relation * self.mechanism.levels, law)])

    def increment_reader(self) -> IncrementReader:
        """Return what reads the stream's increments."""
        return IncrementReader(self.counter.interval, self.resolution, self.labels, self.other)

    @property
    def about(self) -> str:
        """Which rows the totals count, in words."""
        if self.unit.person is None:
            return self.unit.counted
        limit = f"at most {self.unit.rows_per_person:,} per {self.unit.called}"
        return f"the rows counted ({limit} in the whole stream)"

    @property
    def scope(self) -> str:
        """What is counted, and what may be missing, in one sentence."""
        if self.unit.person is None:
            return scope(self.unit)
        limit = self.unit.rows_per_person
        first = f"The first {several(limit, 'row')}" if limit > 1 else "The first row"
        of_each = f"of each {self.unit.called} in the whole stream {agreeing(limit, 'are')} counted"
        return f"{first} {of_each}; further rows are missing, and how many is not known."

    @property
    def counted(self) -> str:
        """Which rows the totals count, and which they do not."""
        return f"{self.scope} {self._left_out}"

    @property
    def _left_out(self) -> str:
        outside = ""
        if self.counter.calendar is not None:
            outside = "outside the calendar, rows that come after their step was published, rows "
        clamped = ""
        if self.counter.interval is not None:
            clamped = " Values beyond the bounds are counted at the nearer bound."
        return (
            f"Rows {outside}without a value, and rows with an unlisted label, are not counted."
            f"{clamped} Every accuracy is about the rows counted."
        )

    @property
    def counted_by_column(self) -> str:
        """The same as version 0.2 said it: a person was called by the name of the column."""
        if self.unit.person is None:
            return self._left_out
        first = f"the first {self.unit.rows_per_person:,} rows of the whole stream are counted"
        of_each = f"Of each {printable(self.unit.person)} {first}, and any further ones are not."
        return f"{of_each} {self._left_out}"

    def guarantee(self, private: bool) -> Guarantee:
        """Return what the stream guarantees."""
        who, *rest = assumptions_of(self.unit)
        if self.unit.person is not None:
            named = f"The {printable(self.unit.person)} given with each row names the person"
            who = f"{named}; of each, the first {self.unit.rows_per_person} count."
        elif self.unit.rows_per_person == 1:
            who = (
                "One event is one person, in all steps together; whoever causes several is "
                "protected event by event only."
            )
        when = (
            "Which steps there are, and their names, does not depend on anybody's rows: both are "
            "shown as they come."
        )
        if self.counter.calendar is not None:
            when = (
                "The steps are those of a public calendar: each is published whether or not rows "
                "lie in it, and others count nowhere."
            )
        return Guarantee(
            self.cost,
            self.unit,
            str(self.mechanism),
            self.counter.proof,
            (who, when, *rest),
            private=private,
            counted=self.counted,
        )


class CounterPreview(Preview, frozen=True, kw_only=True):
    """What a counter would cost, and how accurate its totals would be.

    Attributes
    ----------
    rows : int or None
        As stated by the data custodian.
    mechanism : ElderTree, ToeplitzCounter, BufferCounter or Segments
        ``machine`` in JSON.
    resolution : Fraction
        The unit in which the mechanism counts; ``grain`` in JSON.
    contribution : (int, int)
        The least and the largest value of one row, in units of the resolution; ``reach`` in JSON.
    settled : Settled
        The counter with all that is public about its stream.
    """

    rows: int | None = None
    mechanism: AnyMechanism = msgspec.field(name="machine")
    resolution: Fraction = msgspec.field(name="grain")
    contribution: tuple[int, int] = msgspec.field(name="reach")
    settled: Settled

    @property
    def law(self) -> Law:
        """The noise on each draw of the mechanism."""
        return self.mechanism.law

    @property
    def counted(self) -> str:
        """Which rows the totals would count, and which they would not."""
        return self.settled.counted

    @property
    def _last(self) -> int:
        return self.mechanism.horizon or COMPARED_STEPS

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> float:
        """Return the largest half-width over the horizon, or over 1,000 steps without a horizon.

        Parameters
        ----------
        confidence : str, int, Fraction, Decimal or float
        simultaneous : bool
            The intervals of all totals hold together.
        """
        halves = half_widths(
            self.mechanism, 1, self._last, error_probability(confidence), simultaneous
        )
        return float((halves * float(self.resolution)).max())

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the half-width at each step, beside other methods at the same cost."""
        errors = errors_of_all(
            self.mechanism,
            self._last,
            Contribution(self.unit, self.contribution),
            self.cost,
            error_probability("0.95"),
        )
        scaled = {name: half * float(self.resolution) for name, half in errors.items()}
        return drawn("streams.draw_errors", scaled, ax, "half-width at 95%")

    def lines(self) -> list[str]:
        """Describe the mechanism, and how accurate the totals would be."""
        own = half_width_text(self.accuracy())
        every = half_width_text(self.accuracy(simultaneous=True))
        steps = f"{self.cells:,}" if self.mechanism.horizon else f"the first {self.cells:,}"
        totals = f"of {self.settled.about}, each of {steps} totals"
        return [
            f"by {self.mechanism}",
            f"{totals} is within +-{own} of the truth with 95% confidence",
            f"all of them at once are within +-{every}",
        ]

    def remarks(self) -> list[str]:
        """Return none: ``counted`` says which rows are left out."""
        return []


def _no_horizon(given: object) -> UsageError:
    return UsageError(
        f"horizon = {shown(given)}",
        f"it is a whole number from 1 to {MOST_STEPS:,}, a calendar, or None",
        "Say how many steps there will be at most, or which (sf.Calendar), or horizon=None if that "
        "is not known",
    )
