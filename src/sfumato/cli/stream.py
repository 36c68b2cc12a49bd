"""``sfumato stream``: a running total of whatever comes in, one durable step after another."""

from __future__ import annotations

import datetime as dt
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Literal, SupportsFloat

import click
import msgspec
import numpy as np

from sfumato.cli.options import INTEGER, charged_option, gathers, opened, parse_axes
from sfumato.cli.output import plain_json, talk
from sfumato.cli.publishing import save_plot
from sfumato.cli.targets import NewFile, Picture
from sfumato.counters.calendar import Calendar, DeclaredSteps
from sfumato.counters.methods import Method
from sfumato.counters.question import Counter
from sfumato.counters.totals import Total
from sfumato.data import step_reader
from sfumato.domain import Axis, Categories, Domain, Interval
from sfumato.errors import UsageError
from sfumato.privacy.measures import CentralMeasure, measure_of
from sfumato.privacy.unit import Neighbours
from sfumato.publishing.publisher import Publisher
from sfumato.publishing.stream import Stream, push_all

EVERY = 0.5  # seconds between two reports of progress


class Asked(msgspec.Struct, frozen=True):
    """What is asked: of which rows, over which steps, and at which cost."""

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
    ledger: Path


@click.command(short_help="Publish a running total, step by step.")
@click.argument("file", type=click.Path(path_type=Path), default=Path("-"))
@click.option(
    "--horizon",
    type=INTEGER,
    help="How many steps there will be at most; left out: any number, at a price.",
)
@click.option(
    "--step",
    help="Column that says when: rows with the same entry make one step. Without: one step a line.",
)
@click.option(
    "--from",
    "first",
    help="A calendar: the date, or date and time, at which its first step begins.",
)
@click.option("--to", "last", help="A date in its last step; or --horizon, how many steps it has.")
@click.option(
    "--every",
    default="1d",
    show_default=True,
    help="How long a step of the calendar is: 15min, 1h, 1d, 1w, 1mo.",
)
@click.option("--steps", help="A calendar of names, in order: mon,tue,wed.")
@click.option(
    "--until",
    help="Last step of the calendar to publish. Left out: those that are over by this machine's clock.",
)
@click.option(
    "--value",
    help="Add up values instead of counting: LOW..HIGH[/STEP], or COLUMN=LOW..HIGH[/STEP].",
)
@click.option("--by", help="One total per category: COLUMN=a,b,c.")
@click.option("--person", help="Column that names the person behind a row.")
@click.option(
    "--rows-per-person",
    type=INTEGER,
    default=1,
    show_default=True,
    help="Rows of one person that count, over all steps.",
)
@click.option(
    "--neighbours",
    type=click.Choice(["add-remove", "replace"]),
    default="add-remove",
    show_default=True,
    help="What is hidden.",
)
@click.option(
    "--late",
    type=click.Choice(["refuse", "count"]),
    default="refuse",
    show_default=True,
    help="Steps that come out of order.",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "tree", "toeplitz", "blt"]),
    default="auto",
    show_default=True,
    help="The mechanism.",
)
@click.option(
    "--epsilon", help="Cost of the whole stream in pure privacy; with --delta also Gaussian noise."
)
@click.option("--delta", default="0", show_default=True, help="Delta, beside --epsilon.")
@click.option(
    "--rho", help="Cost of the whole stream in zero-concentrated privacy: Gaussian noise."
)
@click.option("--account", default="default", show_default=True, help="Account in the ledger.")
@click.option(
    "--budget",
    help="Total of the account when it is new: an epsilon (with --delta's delta), or a rho with --rho.",
)
@click.option(
    "--name",
    help="Public name of the data set. Left out: the file's name. Files of one stream share a --name.",
)
@click.option(
    "--key",
    required=True,
    help="Name of the stream: the same key goes on where it stopped, and costs nothing.",
)
@charged_option
@click.option(
    "--follow", is_flag=True, help="Wait for more lines at the end of FILE, until interrupted."
)
@click.option(
    "--more",
    is_flag=True,
    help="Lines without names go on after the last step, instead of being the same input from its beginning.",
)
@click.option("--history", is_flag=True, help="First print the steps that were published before.")
@click.option(
    "--save", type=NewFile(), help="At the end, save all totals as a release, for `sfumato report`."
)
@click.option("--plot", type=Picture(), help="At the end, draw them, as SVG, PNG or PDF.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Accepted as everywhere; the output is JSON lines in any case.",
)
@gathers(Asked)
def stream(
    asked: Asked,
    follow: bool,
    more: bool,
    history: bool,
    save: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Publish the running total of FILE, or of standard input, as one JSON line per step.

    FILE has one increment a line (or a name, a comma and an increment), or is CSV with a header or Parquet, whose rows --step groups.
    With a calendar (--from and --to, or --steps) every step is published once it is over, whether or not rows lie in it; rows outside
    it, and rows that come after their step was published, count nowhere. Without, which steps there are is read off the rows, and not
    protected.
    Each step is on disk before it is printed. Stopped in any way and run again, it prints the steps that are new and no other.

    Example: sfumato stream flights.parquet --step date --from 2013-01-01 --to 2013-12-31 --epsilon 1 --budget 1 --key flights
    """
    del as_json
    counter, columns = _counter(asked)
    step_reader.require_step_column(columns, parquet=step_reader.is_parquet(asked.file))
    if str(asked.file) != "-":
        step_reader.require_columns(asked.file, columns)
    plan = _Plan(asked.file, columns, counter.calendar, asked.until, follow)
    halt = Halt()
    with (
        halt.on_signals(),
        _publisher(asked, columns) as publisher,
        publisher.open(
            counter, key=asked.key, epsilon=asked.epsilon, delta=asked.delta, rho=asked.rho
        ) as opened,
    ):
        _run(opened, plan, first=opened.step + 1 if more else 1, history=history, halt=halt)
        release = opened.history()
    if save is not None:
        release.save(save)
        talk(f"Saved: {save}")
    if plot is not None:
        save_plot(release, plot)
        talk(f"Plot: {plot}")


class _Plan:
    """What to read, and how far to publish.

    A step of a calendar takes no rows once it is published, so it is published when it is over: by the clock, or up to ``until``.
    """

    def __init__(
        self,
        file: Path,
        columns: step_reader.StepColumns | None,
        calendar: DeclaredSteps | None,
        until: str | None,
        follow: bool,
    ) -> None:
        self.file, self.columns, self.calendar, self.follow = file, columns, calendar, follow
        if follow and columns is not None and calendar is not None:
            obstacle = (
                "a step is published once it is over and all input is read, not when rows come"
            )
            raise UsageError(
                "--follow with a calendar",
                obstacle,
                "Run the same command again, from time to time: it goes on by itself",
            )
        ripe = 0 if calendar is None or columns is None else calendar.over(dt.datetime.now())
        self.ripe = ripe if until is None else self._named(until) + 1

    def _named(self, until: str) -> int:
        place = None if self.calendar is None else self.calendar.place(until)
        if place is None:
            raise UsageError(
                f"--until {until}",
                "it is no step of a calendar",
                "Give --from and --to, or --steps, and one of these steps",
            )
        return place

    def arrivals(self, halt: Halt, *, sums: bool, first: int) -> Iterator[step_reader.Arrival]:
        """Steps as they are read; where rows make them and there is a calendar, those that are to be published."""
        for arrival in self._read(halt, sums=sums, first=first):
            place = (
                None
                if self.calendar is None or self.columns is None
                else self.calendar.place(arrival.event)
            )
            if place is None or place < self.ripe:
                yield arrival

    def _read(self, halt: Halt, *, sums: bool, first: int) -> Iterator[step_reader.Arrival]:
        columns, calendar = self.columns, self.calendar
        if columns is not None and step_reader.is_parquet(self.file):
            yield from step_reader.from_parquet(self.file, columns, calendar)
            return
        text = sys.stdin if str(self.file) == "-" else step_reader.open_text(self.file)
        with text:
            lines = (
                step_reader.growing(text, lambda: halt.asked)
                if self.follow and str(self.file) != "-"
                else iter(text)
            )
            if columns is None:
                yield from step_reader.from_lines(lines, sums=sums, first=first, calendar=calendar)
            else:
                yield from step_reader.from_csv(
                    lines, columns, calendar=calendar, ended=lambda: not (self.follow or halt.asked)
                )


def _run(opened: Stream, plan: _Plan, *, first: int, history: bool, halt: Halt) -> None:
    """Take steps until the input ends or a signal comes, and print each as it is taken."""
    before = opened.step
    if history:
        for total in opened:
            _print(total)
    progress = Progress(before, opened.horizon)
    sums = opened.counter.interval is not None
    for total in push_all(opened, halt.between(plan.arrivals(halt, sums=sums, first=first))):
        if total.step > before:
            before = total.step
            _print(total)
            progress.at(before)
    if plan.calendar is not None and plan.ripe > opened.step and not halt.asked:
        for total in opened.advance(plan.calendar.name(plan.ripe - 1)):
            _print(total)
            progress.at(total.step)
    progress.end()
    if plan.columns is not None and plan.calendar is None:
        talk(
            f"Not protected: which {plan.columns.step} has rows at all. A calendar hides it: --from and --to, or --steps."
        )
    guarantee = opened.history().guarantee
    talk(
        f"{'Stopped' if halt.asked else 'Done'} after step {opened.step:,}{_of(opened.horizon)}. {guarantee.sentence()}"
    )
    talk(guarantee.counted)
    if halt.asked:
        talk("The same command goes on from here.")


class Halt:
    """A wish to stop, from a signal: obeyed at once while waiting for input, else when the step at hand is printed."""

    def __init__(self) -> None:
        self.asked = self._waiting = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Turn SIGINT and SIGTERM into the wish while the block runs."""
        before = {
            which: signal.signal(which, self._hear) for which in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for which, handler in before.items():
                signal.signal(which, handler)

    def _hear(self, number: int, frame: object) -> None:
        self.asked = True
        if self._waiting:
            raise _Stop

    def between(self, arrivals: Iterator[step_reader.Arrival]) -> Iterator[step_reader.Arrival]:
        """Pass arrivals on; a signal ends them."""
        while not self.asked:
            self._waiting = True
            try:
                arrival = next(arrivals, None)
            except _Stop:
                return
            finally:
                self._waiting = False
            if arrival is None:
                return
            yield arrival


class _Stop(Exception):
    """A signal came while nothing was at hand."""


class Progress:
    """How far a stream has come, on a terminal's stderr, where stdout is not the same terminal."""

    def __init__(self, start: int, horizon: int | None) -> None:
        self._horizon, self._start, self._began, self._last = horizon, start, time.monotonic(), 0.0
        self._on = sys.stderr.isatty() and not sys.stdout.isatty()

    def at(self, step: int) -> None:
        """Report a step, now and then."""
        now = time.monotonic()
        if self._on and now - self._last > EVERY:
            rate = (step - self._start) / max(now - self._began, 1e-9)
            click.echo(
                f"\rstep {step:,}{_of(self._horizon)}, {rate:,.0f} steps/s ", err=True, nl=False
            )
            self._last = now

    def end(self) -> None:
        """Leave the line."""
        if self._on and self._last:
            click.echo("", err=True)


def _of(horizon: int | None) -> str:
    return "" if horizon is None else f" of {horizon:,}"


def _print(total: Total) -> None:
    """One JSON line; with categories each number is an object by category. ``about`` says which rows the numbers are of."""
    line: dict[str, object] = {
        "step": total.step,
        "event": total.event or None,
        "about": total.about,
    }
    for name in ("value", "low", "high", "all_low", "all_high"):
        number = getattr(total, name)
        plain = [_plain(x) for x in number] if isinstance(number, np.ndarray) else _plain(number)
        line["total" if name == "value" else name] = (
            dict(zip(total.names, plain, strict=True)) if isinstance(plain, list) else plain
        )
    print(plain_json(json.dumps(line)), flush=True)


def _plain(number: SupportsFloat) -> int | float:
    return int(number) if isinstance(number, Integral) else round(float(number), 6)


def _counter(asked: Asked) -> tuple[Counter, step_reader.StepColumns | None]:
    """The counter, and the columns to read."""
    column, interval = _value(asked.value, asked.step is not None)
    by, categories = (
        (None, None) if asked.by is None else next(iter(parse_axes((asked.by,)).items()))
    )
    if by is not None and not isinstance(categories, Categories):
        raise UsageError(
            f"--by {asked.by}", "it names no categories", "Write --by origin=EWR,JFK,LGA"
        )
    if asked.step is None and (by is not None or asked.person is not None):
        raise UsageError(
            "--by or --person without --step",
            "lines hold one increment each",
            "Give CSV or Parquet, and --step COLUMN",
        )
    counter = Counter(
        _horizon(asked), value=interval or 1, by=by, method=asked.method, late=asked.late
    )
    return counter, None if asked.step is None else step_reader.StepColumns(
        asked.step, column, by, asked.person
    )


def _horizon(asked: Asked) -> int | Calendar | tuple[str, ...] | None:
    """How many steps, or which."""
    first, last, steps = asked.first, asked.last, asked.horizon
    if asked.steps is not None:
        if first is not None or last is not None or steps is not None:
            raise UsageError(
                "--steps",
                "it names all steps, and other options name them as well",
                "Leave --from, --to, --horizon out",
            )
        return tuple(name.strip() for name in asked.steps.split(","))
    if first is None:
        if last is not None:
            raise UsageError(
                f"--to {last}",
                "a calendar has a beginning",
                "Write --from 2013-01-01 --to 2013-12-31",
            )
        return steps
    if last is not None and steps is None:
        return Calendar(first, last, asked.every)
    if last is None and steps is not None:
        return Calendar.of_length(first, steps, asked.every)
    raise UsageError(
        f"--from {first}",
        "it takes one of --to and --horizon",
        "Write --from 2013-01-01 --to 2013-12-31",
    )


def _value(text: str | None, by_column: bool) -> tuple[str | None, Interval | None]:
    if text is None:
        return None, None
    name, axis = next(iter(parse_axes((text if "=" in text else f"value={text}",)).items()))
    if not isinstance(axis, Interval):
        raise UsageError(
            f"--value {text}", "it gives no bounds", "Write --value 0..10, or --value minutes=0..60"
        )
    if by_column != ("=" in text):
        remedy = "Write --value COLUMN=LOW..HIGH" if by_column else "Write --value LOW..HIGH"
        raise UsageError(
            f"--value {text}", "rows hold values in a column, and lines in no column", remedy
        )
    return name, axis


def _publisher(asked: Asked, columns: step_reader.StepColumns | None) -> Publisher:
    """A publisher of no rows: the stream's own rows come by pushes."""
    import pyarrow as pa

    from sfumato.data import source

    axes: dict[str, Axis] = {"step": Interval(0, 1)}
    if columns is not None and asked.by is not None:
        axes |= parse_axes((asked.by,))
    # The stream's rows come by pushes; the file gives the source its title, so that two files do not share a key unseen.
    missing = {*axes, *([asked.person] if asked.person else [])}
    rows = (
        asked.file
        if str(asked.file) != "-"
        else pa.table({name: pa.array([], pa.string()) for name in missing})
    )
    src = source(
        rows,
        Domain(axes),
        person=asked.person,
        rows_per_person=asked.rows_per_person,
        neighbours=asked.neighbours,
        name=asked.name,
    )
    return Publisher(src, ledger=opened(asked.ledger), account=asked.account, budget=_total(asked))


def _total(asked: Asked) -> CentralMeasure | None:
    """Read --budget in the measure of the stream."""
    if asked.budget is None:
        return None
    if asked.rho is not None:
        return measure_of("--budget", rho=asked.budget)
    return measure_of("--budget", epsilon=asked.budget, delta=asked.delta)
