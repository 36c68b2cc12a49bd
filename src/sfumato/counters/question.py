"""A running total that is paid for once and published step by step: the question, its preview and its answer."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec
import numpy as np

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.answers.release import Release
from sfumato.arrays import Array
from sfumato.counters.bands import half_widths
from sfumato.counters.calendar import MOST_STEPS, Calendar, Listed, Steps
from sfumato.counters.increments import Reader, bounds_of, event_text, grain_of
from sfumato.counters.machine import Whole
from sfumato.counters.methods import FAR, AnyMachine, Method, Reach, errors_of_all, machine_for
from sfumato.domain import Categories, Domain, Interval, Label
from sfumato.errors import UsageError, nearest, printable, shown
from sfumato.limits import require_numbers
from sfumato.mechanisms.noise import Law
from sfumato.numbers import Exactly, settle
from sfumato.privacy.guarantee import Guarantee, Proof, assumptions_of, fill_docstring
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

MOST_CELLS = 2**16
LARGEST_GRAIN = 10**100  # the size of the largest bounds
METHODS = ("auto", "tree", "toeplitz", "blt")
LATE = ("refuse", "count")


@fill_docstring
class Counter(
    msgspec.Struct, frozen=True, tag="counter", omit_defaults=True, forbid_unknown_fields=True
):
    """How many so far? A running total, of events or of clamped values, published after every step.

    It is opened, not released: ``publisher.open(counter, epsilon=..., key=...)`` pays once for all steps and gives a stream.

    Parameters
    ----------
    horizon : int, Calendar, list of str or None
        How many steps there will be, at most 10^7; or which: a ``Calendar`` of dates, or their names. Then every step is published,
        whether or not rows lie in it, and what lies in none of them counts nowhere. None: any number; totals are then less accurate
        (one tree after another, each three times as long).
    value : 1 or Interval
        1: events are counted. An Interval: values are added up, clamped to it and rounded to its step, or to 2^-16 of its width.
    by : str, Categories or None
        One total per category: the name of a Categories axis of the domain, or the categories themselves.
    method : {"auto", "tree", "toeplitz", "blt"}
        A Laplace tree; under rho or with delta also Gaussian noise with a square-root Toeplitz matrix (up to 1,024 steps) or a
        buffered one. "auto": the one with the smallest largest variance.
    late : {"refuse", "count"}
        What becomes of an event whose name comes before the last one's: refused, or counted at the present step. With a calendar a
        step that is published takes no more rows.

    Raises
    ------
    UsageError
        If a parameter is wrong.

    Guarantee
    ---------
    {proof}

    >>> from sfumato.privacy.measures import PureDP
    >>> print(Counter(horizon=365).preview(None, Unit(), PureDP("1")))
    Running total of events at epsilon = 1, for any one person contributing at most one row, added or removed:
      by an elder tree of 2 levels (radices 21) with discrete Laplace noise of scale 2 on each draw
      of the rows counted, each of 365 totals is within +-29 of the truth with 95% confidence
      all of them at once are within +-58
      anyone 1% sure that a person is in the data can become at most 2.68% sure
    """

    horizon: int | Calendar | tuple[str, ...] | None
    value: int | Interval = 1
    by: str | Categories | None = None
    method: Method = "auto"
    late: Literal["refuse", "count"] = "refuse"

    proof: ClassVar[Proof] = Proof(
        sensitivity="what one person's rows add up to, at most rows_per_person times the largest value, wherever and whenever they come.",
        because="each step publishes integers only, by a machine whose proof is in its module: a Laplace tree in which each row lies "
        "under one draw per level, or a Toeplitz matrix with entries on the lattice of the Gaussian noise. It holds for increments "
        "chosen after seeing earlier totals.",
        not_covered="how many steps there were, when, and the names of events (with a calendar: when each was published); the state at "
        "rest, which is secret; an older copy of the ledger put back, which would draw new noise for old steps.",
        source="Dwork, Naor, Pitassi, Rothblum 2010; Andersson, Pagh, Steiner, Torkamani 2025; Fichtenberger, Henzinger, Upadhyay "
        "2023; Dvijotham et al. 2024.",
    )

    def __post_init__(self) -> None:
        horizon: object = self.horizon
        if isinstance(horizon, list | tuple):
            msgspec.structs.force_setattr(self, "horizon", tuple(map(event_text, horizon)))
        elif isinstance(horizon, bool) or not (
            horizon is None or isinstance(horizon, Calendar | int)
        ):
            raise _no_horizon(horizon)
        steps = self.steps
        if steps is not None and not 1 <= steps <= MOST_STEPS:
            raise _no_horizon(horizon)
        if self.late == "count" and not isinstance(self.horizon, int | None):
            remedy = "Leave late out, or give a number of steps"
            raise UsageError(
                'late="count" with a calendar',
                "a step that is published takes no more rows",
                remedy,
            )
        value: object = self.value
        if isinstance(value, bool) or not (
            value == 1
            if isinstance(value, int)
            else isinstance(value, Interval) and value.time is None
        ):
            remedy = "Write value=1 to count events, or value=sf.Interval(0, 10) for clamped sums"
            raise UsageError(
                "the value of a counter", "it is neither 1 nor an Interval of numbers", remedy
            )
        if not isinstance(self.by, str | Categories | None) or self.by == "":
            remedy = 'Write by="origin", or by=sf.Categories(["a", "b"])'
            raise UsageError(
                f"by of type {type(self.by).__name__}",
                "it is neither the name of an axis nor Categories",
                remedy,
            )
        for name, given, known in (("method", self.method, METHODS), ("late", self.late, LATE)):
            if given not in known:
                raise UsageError(
                    f"{name} = {shown(given)}",
                    f"it is unknown; {nearest(given, known)}",
                    "Name one",
                )
        settle(self)

    @property
    def calendar(self) -> Steps | None:
        """The steps there are, if they were declared."""
        return (
            Listed(self.horizon)
            if isinstance(self.horizon, tuple)
            else self.horizon
            if isinstance(self.horizon, Calendar)
            else None
        )

    @property
    def steps(self) -> int | None:
        """How many steps there may be; None: any number."""
        calendar = self.calendar
        return (
            len(calendar)
            if calendar is not None
            else self.horizon
            if isinstance(self.horizon, int)
            else None
        )

    @property
    def title(self) -> str:
        what = (
            "events"
            if not isinstance(self.value, Interval)
            else f"values from {self.value.lower} to {self.value.upper}"
        )
        return f"Running total of {what}" + (
            f" by {printable(self.by) if isinstance(self.by, str) else 'category'}"
            if self.by is not None
            else ""
        )

    def settle(self, domain: Domain | None, unit: Unit, cost: CentralMeasure) -> Settled:
        """Fix everything that is public: categories, grain, mechanism and cost. Touches no data."""
        axis = self._axis(domain)
        labels = None if axis is None else tuple(axis.all_labels)
        if labels is not None and len(labels) > MOST_CELLS:
            raise UsageError(
                self.title,
                f"it would have {len(labels):,} categories, and the limit is {MOST_CELLS:,}",
                "Take fewer",
            )
        if labels is not None and self.steps is not None:
            require_numbers(f"{self.title} over {self.steps:,} steps", self.steps * len(labels))
        grain = grain_of(self.value)
        reach = Reach(unit, bounds_of(self.value, grain))
        machine, used = machine_for(
            self.method, self.steps, 1 if labels is None else len(labels), reach, cost
        )
        name = self.by if isinstance(self.by, str) else "category"
        return Settled(
            self,
            machine,
            used,
            unit,
            grain,
            name,
            labels,
            axis is not None and axis.other is not None,
        )

    def _axis(self, domain: Domain | None) -> Categories | None:
        if not isinstance(self.by, str):
            return self.by
        found = None if domain is None else domain.get(self.by)
        if not isinstance(found, Categories):
            known = [name for name, axis in (domain or {}).items() if isinstance(axis, Categories)]
            obstacle = f"the domain has no Categories axis of that name; {nearest(self.by, known)}"
            raise UsageError(f"by = {shown(self.by)}", obstacle, "Name one")
        return found

    def preview(
        self, domain: Domain | None, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> CounterPreview:
        """Say how accurate the totals would be over the horizon."""
        settled = self.settle(domain, unit, cost)
        machine = settled.machine
        return CounterPreview(
            self.title,
            settled.cost,
            unit,
            (self.steps or FAR) * machine.cells,
            rows=rows,
            machine=machine,
            grain=settled.grain,
            settled=settled,
            reach=bounds_of(self.value, settled.grain),
        )


class Settled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A counter with all that is public about its stream. It is stored with the charge, so that a later version goes on as it began.

    Attributes
    ----------
    counter : Counter
    machine : ElderTree, ToeplitzCounter, BufferCounter or Segments
    cost : PureDP, ApproxDP or ZCDP
    unit : Unit
    grain : Fraction
        In which outputs are counted.
    axis : str
        What the categories are called.
    labels : tuple, or None
    other : bool
        The last label takes every value that is not listed.
    """

    counter: Counter
    machine: AnyMachine
    cost: CentralMeasure
    unit: Unit
    grain: Fraction
    axis: str
    labels: tuple[Label, ...] | None
    other: bool

    def reader(self) -> Reader:
        """What reads its increments."""
        return Reader(self.counter.value, self.grain, self.labels, self.other)

    @property
    def about(self) -> str:
        """Which rows the totals are of, in words."""
        person, rows = self.unit.person, self.unit.rows_per_person
        return (
            self.unit.counted
            if person is None
            else f"the rows counted (at most {rows:,} a {printable(person)} in the whole stream)"
        )

    @property
    def counted(self) -> str:
        """Which rows the totals are of, and which not."""
        person, rows = self.unit.person, self.unit.rows_per_person
        limit = (
            ""
            if person is None
            else f"Of each {printable(person)} the first {rows:,} rows of the whole stream are counted, and any further ones are not. "
        )
        where = (
            ""
            if self.counter.calendar is None
            else "outside the calendar, rows that come after their step was published, rows "
        )
        left_out = f"Rows {where}without a value, and rows with an unlisted label, are not counted."
        clamped = (
            " Values beyond the bounds are counted at the nearer bound."
            if isinstance(self.counter.value, Interval)
            else ""
        )
        return f"{limit}{left_out}{clamped} Every accuracy is about the rows counted."

    def guarantee(self, private: bool) -> Guarantee:
        """What its stream promises."""
        who, *rest = assumptions_of(self.unit)
        if self.unit.person is not None:
            named = printable(self.unit.person)
            who = f"The {named} given with each row names the person; of each, the first {self.unit.rows_per_person} count."
        elif self.unit.rows_per_person == 1:
            who = "One event is one person, in all steps together; whoever causes several is protected event by event only."
        when = "Which steps there are, and their names, does not depend on anybody's rows: both are shown as they come."
        if self.counter.calendar is not None:
            when = "The steps are those of a public calendar: each is published whether or not rows lie in it, and others count nowhere."
        return Guarantee(
            self.cost,
            self.unit,
            str(self.machine),
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
        As stated by the holder.
    machine : ElderTree, ToeplitzCounter, BufferCounter or Segments
    grain : Fraction
    reach : (int, int)
        The least and the largest that one row can bring, in grains.
    settled : Settled
        The counter with all that is public about its stream.
    """

    rows: int | None = None
    machine: AnyMachine
    grain: Fraction
    reach: tuple[int, int]
    settled: Settled

    @property
    def law(self) -> Law:
        """Of the noise on each draw of the mechanism."""
        return self.machine.law

    @property
    def counted(self) -> str:
        """Which rows the totals would be of, and which not."""
        return self.settled.counted

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> float:
        """The largest half-width over the horizon (without one: over the first 1,000 steps); ``simultaneous``: all totals hold together."""
        alpha = error_probability(confidence)
        return float(
            (
                half_widths(self.machine, 1, self.machine.horizon or FAR, alpha, simultaneous)
                * float(self.grain)
            ).max()
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how far off the totals may be at each step, beside other methods at the same cost, and return the Axes."""
        from sfumato.charts import errors as streaming

        last, reach = self.machine.horizon or FAR, Reach(self.unit, self.reach)
        errors = errors_of_all(self.machine, last, reach, self.cost, error_probability("0.95"))
        return streaming.draw_errors(
            {name: half * float(self.grain) for name, half in errors.items()},
            ax,
            unit="half-width at 95%",
        )

    def lines(self) -> list[str]:
        """Which mechanism adds the noise, and how accurate the totals would be."""
        each, every = (
            f"{half:,.0f}" if half >= 100 else f"{half:.4g}"
            for half in (self.accuracy(), self.accuracy(simultaneous=True))
        )
        steps = f"{self.cells:,}" if self.machine.horizon else f"the first {self.cells:,}"
        return [
            f"by {self.machine}",
            f"of {self.settled.about}, each of {steps} totals is within +-{each} of the truth with 95% confidence",
            f"all of them at once are within +-{every}",
        ]

    def remarks(self) -> list[str]:
        """None: ``counted`` says which rows are left out."""
        return []


class CounterRelease(
    Release, frozen=True, kw_only=True, eq=False, tag="counter-release", forbid_unknown_fields=True
):
    """The running totals that a stream has published so far.

    Attributes
    ----------
    settled : Settled
        The counter, its mechanism, grain and categories.
    outputs : tuple of tuple of int, of shape (steps, categories)
        What the mechanism published: integers, the only thing that was computed from data.
    events : tuple of str
        Names of the steps; "" where there was none.
    """

    noun: ClassVar[str] = "total"

    settled: Settled
    outputs: tuple[Whole, ...]
    events: tuple[str, ...]

    def __post_init__(self) -> None:
        settled, steps = self.settled, len(self.outputs)
        cells, horizon = (
            1 if settled.labels is None else len(settled.labels),
            settled.machine.horizon,
        )
        if len(self.events) != steps or any(len(output) != cells for output in self.outputs):
            raise UsageError(
                "a running total",
                "it has another number of totals than of steps",
                "Load a file that release.save wrote",
            )
        if (
            settled.machine.cells != cells
            or not 0 < settled.grain <= LARGEST_GRAIN
            or (horizon is not None and steps > horizon)
        ):
            raise UsageError(
                "a running total",
                "its mechanism belongs to another stream",
                "Load a file that release.save wrote",
            )
        calendar = settled.counter.calendar
        if calendar is not None and any(
            name != calendar.name(place) for place, name in enumerate(self.events)
        ):
            raise UsageError(
                "a running total",
                "its steps are not those of its calendar",
                "Load a file that release.save wrote",
            )
        if (
            self.guarantee.counted != settled.counted
        ):  # version 0.1 did not say it, and what holds for tables was filled in
            guarantee = msgspec.structs.replace(self.guarantee, counted=settled.counted)
            msgspec.structs.force_setattr(self, "guarantee", guarantee)

    @property
    def values(self) -> Array:
        """Estimates of the totals: ndarray of shape (steps,), or (steps, categories); int64 where they are whole counts."""
        read = self.settled.machine.follow()
        found = np.array([scaled(read(output), self.settled.grain) for output in self.outputs])
        found = found.reshape(len(self.outputs), self.settled.machine.cells)
        return found[:, 0] if self.settled.labels is None else found

    @property
    def title(self) -> str:
        return self.settled.counter.title

    @property
    def about(self) -> str:
        """Which rows the totals are of, in words."""
        return self.settled.about

    def numbers(self) -> tuple[int, ...]:
        """What the mechanism published, step by step; a tree draws the noise of later steps with that of earlier ones."""
        return tuple(total for output in self.outputs for total in output)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the categories; one empty name without them."""
        return (
            ("",)
            if self.settled.labels is None
            else tuple(str(label) for label in self.settled.labels)
        )

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """Half-widths like ``values``; ``simultaneous``: for all steps of the horizon at once, those to come included."""
        alpha, steps = error_probability(confidence), len(self.outputs)
        half = (
            half_widths(self.settled.machine, 1, steps, alpha, simultaneous)
            if steps
            else np.zeros(0)
        )
        half = half * float(self.settled.grain)
        return (
            half
            if self.settled.labels is None
            else np.repeat(half[:, None], self.settled.machine.cells, axis=1)
        )

    def to_frame(self) -> pa.Table:
        """One row per step and category: step, event where steps have names, the category, total, low, high (95%)."""
        import pyarrow as pa

        steps, cells = len(self.outputs), self.settled.machine.cells
        number = np.repeat(np.arange(1, steps + 1), cells)
        columns: dict[str, Array | list[str]] = {"step": number}
        if any(self.events):
            columns["event"] = np.repeat(np.array(self.events, dtype=object), cells).tolist()
        if self.settled.labels is not None:
            columns[self.settled.axis] = list(self.names) * steps
        low, high = self.interval()
        return pa.table(
            columns
            | {"total": self.values.reshape(-1), "low": low.reshape(-1), "high": high.reshape(-1)}
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """The totals over time with their band; several categories in several colours."""
        from sfumato.charts import streams

        return streams.draw(self, ax)


def _no_horizon(given: object) -> UsageError:
    remedy = "Say how many steps there will be at most, or which (sf.Calendar), or horizon=None if that is not known"
    return UsageError(
        f"horizon = {shown(given)}",
        f"it is a whole number from 1 to {MOST_STEPS:,}, a calendar, or None",
        remedy,
    )


def scaled(totals: Iterable[float], grain: Fraction) -> list[float]:
    """Totals in grains as numbers for people: whole numbers stay whole where the grain is 1."""
    if grain == 1:
        return list(totals)
    unit = float(grain)
    return [float(total) * unit for total in totals]
