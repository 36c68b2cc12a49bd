"""The running totals that a stream has published, as a release."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar, Self

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.answers import Axes, Captions, Release, drawn, error_probability
from sfumato.basics import Array, Exactly, table_of
from sfumato.errors import require_fitting
from sfumato.privacy import counted_rows
from sfumato.questions.counters.mechanism import Whole
from sfumato.questions.counters.question import Settled, half_widths


class CounterRelease(
    Release, frozen=True, kw_only=True, eq=False, tag="counter-release", forbid_unknown_fields=True
):
    """The running totals that a stream has published so far.

    Attributes
    ----------
    settled : Settled
        The counter, its mechanism, resolution and categories.
    outputs : tuple of tuple of int, of shape (steps, categories)
        What the mechanism published: integers, the only numbers that were computed from data.
    events : tuple of str
        Names of the steps; "" where there was none.

    >>> import numpy as np, sfumato as sf
    >>> ages = np.array([[31.0], [35.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> with sf.Publisher(src, budget="1") as publisher:
    ...     with publisher.open(sf.Counter(horizon=7), epsilon="1", key="visits") as stream:
    ...         total = stream.push(12, event="2026-11-21")
    ...     release = stream.history()
    >>> release.values.shape, release.events
    ((1,), ('2026-11-21',))
    """

    _in_details: ClassVar[frozenset[str]] = frozenset({"outputs", "settled"})

    noun: ClassVar[str] = "total"

    settled: Settled
    outputs: tuple[Whole, ...]
    events: tuple[str, ...]

    def __post_init__(self) -> None:
        name = "a running total"
        cells = len(self.names)
        steps = len(self.outputs)
        sized = len(self.events) == steps and all(len(output) == cells for output in self.outputs)
        require_fitting(sized, name, "it has another number of totals than of steps")
        mechanism = self.settled.mechanism
        within = mechanism.horizon is None or steps <= mechanism.horizon
        sound = 0 < self.settled.resolution <= 10**100
        own = mechanism.cells == cells and sound and within
        require_fitting(own, name, "its mechanism belongs to another stream")
        calendar = self.settled.counter.calendar
        named = calendar is None or self.events == tuple(map(calendar.name, range(steps)))
        require_fitting(named, name, "its steps are not those of its calendar")
        # Version 0.1 did not store this text, and decoding filled in that of tables.
        if self.guarantee.counted == counted_rows(self.guarantee.unit):
            guarantee = msgspec.structs.replace(self.guarantee, counted=self.settled.counted)
            msgspec.structs.force_setattr(self, "guarantee", guarantee)

    @property
    def values(self) -> Array:
        """Estimates of the totals: ndarray of shape (steps,), or (steps, categories).

        They are int64 where they are whole counts.
        """
        estimate = self.settled.mechanism.estimator()
        resolution = self.settled.resolution
        estimates = np.array([scaled(estimate(output), resolution) for output in self.outputs])
        estimates = estimates.reshape(len(self.outputs), self.settled.mechanism.cells)
        return estimates[:, 0] if self.settled.labels is None else estimates

    @property
    def title(self) -> str:
        return self.settled.counter.title

    @property
    def about(self) -> str:
        """Which rows the totals count, in words."""
        return self.settled.about

    @property
    def scope(self) -> str:
        """What the totals count, and what may be missing, in one sentence."""
        return self.settled.scope

    def numbers(self) -> tuple[int, ...]:
        """Return what the mechanism published, step by step.

        A tree draws some of the noise of later steps with that of earlier ones.
        """
        return tuple(total for output in self.outputs for total in output)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the categories; one empty name without categories."""
        if self.settled.labels is None:
            return ("",)
        return tuple(str(label) for label in self.settled.labels)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """Return half-widths, as an ndarray of the shape of ``values``.

        Parameters
        ----------
        confidence : str, int, Fraction, Decimal or float
        simultaneous : bool
            The intervals of all steps of the horizon hold together, those to come included.
        """
        alpha = error_probability(confidence)
        half = np.zeros(0)
        if self.outputs:
            half = half_widths(self.settled.mechanism, 1, len(self.outputs), alpha, simultaneous)
        half = half * float(self.settled.resolution)
        if self.settled.labels is None:
            return half
        return np.repeat(half[:, None], self.settled.mechanism.cells, axis=1)

    @property
    def label_columns(self) -> tuple[str, ...]:
        return () if self.settled.labels is None else (self.settled.axis,)

    def to_frame(self) -> pa.Table:
        """Return a table with one row per step and category.

        Its columns are step, event (where steps have names), the category, total, low and high, at
        95% confidence.
        """

        steps = len(self.outputs)
        cells = self.settled.mechanism.cells
        columns: dict[str, Array | list[str]] = {"step": np.repeat(np.arange(1, steps + 1), cells)}
        if any(self.events):
            columns["event"] = np.repeat(np.array(self.events, dtype=object), cells).tolist()
        if self.settled.labels is not None:
            columns[self.settled.axis] = list(self.names) * steps
        low, high = self.interval()
        columns["total"] = self.values.reshape(-1)
        columns["low"] = low.reshape(-1)
        columns["high"] = high.reshape(-1)
        return table_of(columns)

    def _named(self, captions: Captions) -> Self:
        if self.settled.labels is None:
            return self
        (axis,) = captions.lattice(self.settled.categories).axes
        settled = msgspec.structs.replace(self.settled, labels=tuple(axis.cell_names()))
        return msgspec.structs.replace(self, settled=settled)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the totals over time with their band, each category in a colour of its own."""
        return drawn("streams.draw", self, ax)


def scaled(totals: Iterable[float], resolution: Fraction) -> list[float]:
    """Convert totals to the counter's unit; integers stay integers where the resolution is 1."""
    if resolution == 1:
        return list(totals)
    return [float(total) * float(resolution) for total in totals]
