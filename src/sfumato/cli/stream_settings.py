"""What the options of ``sfumato stream`` describe: a counter, the columns to read, a publisher."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from sfumato.cli.options import opened_to_charge
from sfumato.cli.parsing import parse_axes, parse_captions
from sfumato.data.steps import StepColumns
from sfumato.domain.domain import Axis, Categories, Domain, Interval, Listed
from sfumato.errors import UsageError
from sfumato.privacy.measures import CentralMeasure, measure_of
from sfumato.privacy.unit import Neighbours
from sfumato.publishing.publisher import Publisher
from sfumato.questions.counters.calendar import Calendar
from sfumato.questions.counters.methods import Method
from sfumato.questions.counters.question import Counter


class StreamSettings(msgspec.Struct, frozen=True):
    """Which rows are counted, over which steps, and at which cost."""

    file: Path
    horizon: int | None
    step: str | None
    first: str | None
    last: str | None
    every: str
    steps: str | None
    until: str | None
    value: str | None
    by: str | None
    person: str | None
    rows_per_person: int
    neighbours: Neighbours
    late: Literal["refuse", "count"]
    method: Method
    epsilon: str | None
    delta: str
    rho: str | None
    account: str
    budget: str | None
    name: str | None
    key: str
    ledger: str | Path
    heading: str | None
    measured_in: str | None
    label_name: tuple[str, ...]

    @property
    def from_stdin(self) -> bool:
        """Whether standard input is read in place of a file."""
        return str(self.file) == "-"

    def counter(self) -> tuple[Counter, StepColumns | None]:
        """The counter, and the columns to read; None if each line is one increment."""
        value_column, interval = _value(self.value, by_column=self.step is not None)
        by = self._by_column()
        if self.step is None and (by is not None or self.person is not None):
            raise UsageError(
                "--by or --person without --step",
                "lines hold one increment each",
                "Give CSV or Parquet, and --step COLUMN",
            )
        counter = Counter(
            self._horizon(),
            value=1 if interval is None else interval,
            by=by,
            method=self.method,
            late=self.late,
        )
        words = parse_captions(self.heading, self.measured_in, self.label_name)
        counter = msgspec.structs.replace(counter, **words)
        if self.step is None:
            return counter, None
        return counter, StepColumns(self.step, value_column, by, self.person)

    def _by_column(self) -> str | None:
        if self.by is None:
            return None
        ((name, axis),) = parse_axes((self.by,)).items()
        if isinstance(axis, Listed) and not isinstance(axis, Categories):
            raise UsageError(
                f"--by {self.by}",
                "a stream reads labels from a column, and derives none from dates",
                "Write the labels into a column, and name it: --by weekday=Monday,Tuesday",
            )
        if not isinstance(axis, Categories):
            raise UsageError(
                f"--by {self.by}", "it names no categories", "Write --by origin=EWR,JFK,LGA"
            )
        return name

    def _horizon(self) -> int | Calendar | tuple[str, ...] | None:
        """How many steps there are, or which; None for any number."""
        if self.steps is not None:
            return self._named_steps(self.steps)
        if self.first is None:
            if self.last is not None:
                raise UsageError(
                    f"--to {self.last}",
                    "a calendar has a beginning",
                    "Write --from 2013-01-01 --to 2013-12-31",
                )
            return self.horizon
        if self.last is not None and self.horizon is None:
            return Calendar(self.first, self.last, self.every)
        if self.last is None and self.horizon is not None:
            return Calendar.of_length(self.first, self.horizon, self.every)
        raise UsageError(
            f"--from {self.first}",
            "it takes one of --to and --horizon",
            "Write --from 2013-01-01 --to 2013-12-31",
        )

    def _named_steps(self, steps: str) -> tuple[str, ...]:
        if (self.first, self.last, self.horizon) != (None, None, None):
            raise UsageError(
                "--steps",
                "it names all steps, and other options name them as well",
                "Leave --from, --to, --horizon out",
            )
        return tuple(name.strip() for name in steps.split(","))

    def publisher(self) -> Publisher:
        """A publisher whose source gives the stream its title; the rows come by pushes."""
        from sfumato.data import source

        axes: dict[str, Axis] = {"step": Interval(0, 1)}
        if self.step is not None and self.by is not None:
            axes |= parse_axes((self.by,))
        src = source(
            self._rows(axes),
            Domain(axes),
            person=self.person,
            rows_per_person=self.rows_per_person,
            neighbours=self.neighbours,
            name=self.name,
        )
        return Publisher(
            src, ledger=opened_to_charge(self.ledger), account=self.account, budget=self._budget()
        )

    def _rows(self, axes: dict[str, Axis]) -> object:
        """The file, which names the source, so that two files cannot share a key unnoticed."""
        if not self.from_stdin:
            return self.file
        import pyarrow as pa

        names = {*axes, *([self.person] if self.person else [])}
        return pa.table({name: pa.array([], pa.string()) for name in names})

    def _budget(self) -> CentralMeasure | None:
        """--budget in the measure of the stream."""
        if self.budget is None:
            return None
        if self.rho is not None:
            return measure_of("--budget", rho=self.budget)
        return measure_of("--budget", epsilon=self.budget, delta=self.delta)


def _value(text: str | None, *, by_column: bool) -> tuple[str | None, Interval | None]:
    """Read --value: the column, None for lines, and the bounds of what is added up."""
    if text is None:
        return None, None
    has_name = "=" in text
    ((name, axis),) = parse_axes((text if has_name else f"value={text}",)).items()
    if not isinstance(axis, Interval):
        raise UsageError(
            f"--value {text}", "it gives no bounds", "Write --value 0..10, or --value minutes=0..60"
        )
    if by_column != has_name:
        remedy = "Write --value COLUMN=LOW..HIGH" if by_column else "Write --value LOW..HIGH"
        raise UsageError(
            f"--value {text}", "rows hold values in a column, and lines in no column", remedy
        )
    return name, axis
