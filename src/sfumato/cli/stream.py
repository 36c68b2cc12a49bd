"""``sfumato stream``: publish a running total, one durable step after another.

First stands what its options describe: a counter, the columns to read, a publisher. Then the steps
of a stream are read, and it is decided which of them are over.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import time
from collections.abc import Iterator
from io import TextIOWrapper
from numbers import Integral
from pathlib import Path
from typing import Literal, SupportsFloat, TextIO

import click
import msgspec
import numpy as np
import pyarrow as pa

from sfumato.cli.layers import LayeredCommand
from sfumato.cli.options import (
    ACCOUNT,
    COST,
    INTEGER,
    OUTPUT,
    PERSON_CALLED_HELP,
    PERSON_HELP,
    PERSONS,
    QUESTION,
    account_option,
    charged_option,
    gathers,
    json_ignored_option,
    neighbours_option,
    opened_to_charge,
    option,
    rows_per_person_option,
    text_options,
    words_options,
)
from sfumato.cli.output import plain_json, print_messages
from sfumato.cli.parsing import parse_axes
from sfumato.cli.paths import NewFile, Picture
from sfumato.cli.publishing import PaidSettings, picture_of
from sfumato.cli.running import StopRequest
from sfumato.data import source, steps
from sfumato.data.options import NO_OPTIONS, StatedOptions, file_options
from sfumato.data.steps import Arrival, StepColumns
from sfumato.domain import Axis, Categories, Domain, Interval, Listed
from sfumato.errors import UsageError
from sfumato.privacy import Neighbours, measure_of
from sfumato.publishing.publisher import CommandPublisher, Publisher
from sfumato.publishing.stream import Stream, push_all
from sfumato.questions.counters.calendar import Calendar, DeclaredSteps
from sfumato.questions.counters.mechanism import Total
from sfumato.questions.counters.methods import Method
from sfumato.questions.counters.question import Counter

# --- what the options describe --------------------------------------------------------------------


class StreamSettings(PaidSettings, frozen=True):
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
    person_called: str | None
    rows_per_person: int
    neighbours: Neighbours
    late: Literal["refuse", "count"]
    method: Method
    name: str | None
    key: str
    written: StatedOptions

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
        counter = msgspec.structs.replace(counter, **self.captions())
        written = file_options(self.written)
        if self.step is None:
            for name in written.changed():
                raise UsageError(
                    f"--{name.replace('_', '-').removesuffix('s')} without --step",
                    "lines hold one increment each",
                    "Give CSV with a header, and --step COLUMN",
                )
            return counter, None
        return counter, StepColumns(self.step, value_column, by, self.person, written)

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
            if (self.first, self.last, self.horizon) != (None, None, None):
                raise UsageError(
                    "--steps",
                    "it names all steps, and other options name them as well",
                    "Leave --from, --to, --horizon out",
                )
            return tuple(name.strip() for name in self.steps.split(","))
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

    def publisher(self) -> Publisher:
        """A publisher whose source gives the stream its title; the rows come by pushes."""
        axes: dict[str, Axis] = {"step": Interval(0, 1)}
        if self.step is not None and self.by is not None:
            axes |= parse_axes((self.by,))
        # The file names the source, so that two files cannot share a key unnoticed.
        rows: object = self.file
        if self.from_stdin:
            names = {*axes, *([self.person] if self.person else [])}
            no_texts = pa.array([], pa.string())
            rows = pa.table(dict.fromkeys(names, no_texts))
        src = source(
            rows,
            Domain(axes),
            person=self.person,
            rows_per_person=self.rows_per_person,
            neighbours=self.neighbours,
            name=self.name,
            person_called=self.person_called,
            **({} if self.from_stdin else msgspec.structs.asdict(self.written)),
        )
        ledger = opened_to_charge(self.ledger)
        budget = None
        if self.budget is not None and self.rho is not None:
            budget = measure_of("--budget", rho=self.budget)
        elif self.budget is not None:
            budget = measure_of("--budget", epsilon=self.budget, delta=self.delta)
        return CommandPublisher(src, ledger=ledger, account=self.account, budget=budget)


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
        raise UsageError(
            f"--value {text}",
            "rows hold values in a column, and lines in no column",
            "Write --value COLUMN=LOW..HIGH" if by_column else "Write --value LOW..HIGH",
        )
    return name, axis


# --- steps that are read --------------------------------------------------------------------------


class StreamInput:
    """The rows of a stream, grouped into steps.

    With a calendar a step takes no more rows once it is published, so that it is published when it
    is over: by this machine's clock, or up to ``until``.

    Parameters
    ----------
    file : Path
        "-" for standard input.
    columns : StepColumns or None
        None: each line of text is one step.
    calendar : DeclaredSteps or None
    until : str or None
        The last step to publish.
    follow : bool
        Wait for more lines at the end of the file.

    Attributes
    ----------
    n_over : int
        How many steps of the calendar are over.

    Raises
    ------
    UsageError
        If ``follow`` or ``until`` does not fit the calendar.
    """

    def __init__(
        self,
        file: Path,
        columns: StepColumns | None,
        calendar: DeclaredSteps | None,
        until: str | None,
        follow: bool,
    ) -> None:
        if follow and columns is not None and calendar is not None:
            raise UsageError(
                "--follow with a calendar",
                "a step is published once it is over and all input is read, not when rows come",
                "Run the same command again, from time to time: it goes on by itself",
            )
        self.file = file
        self.columns = columns
        self.calendar = calendar
        self.follow = follow
        # The clock is read once, before any row: a step that ends later may lack rows.
        if until is not None:
            index = None if calendar is None else calendar.place(until)
            if index is None:
                raise UsageError(
                    f"--until {until}",
                    "it is no step of a calendar",
                    "Give --from and --to, or --steps, and one of these steps",
                )
            self.n_over = index + 1
        elif calendar is None or columns is None:
            self.n_over = 0
        else:
            self.n_over = calendar.over(dt.datetime.now())

    def arrivals(self, stop: StopRequest, *, sums: bool, first: int) -> Iterator[Arrival]:
        """Steps as they are read, without those of a calendar that are not over yet.

        Parameters
        ----------
        stop : StopRequest
            Ends waiting for more lines.
        sums : bool
            Whether the increments are numbers, not counts.
        first : int
            The number of the first line without a name.
        """
        for arrival in self._read(stop, sums=sums, first=first):
            index = None
            if self.calendar is not None and self.columns is not None:
                index = self.calendar.place(arrival.event)
            if index is None or index < self.n_over:
                yield arrival

    def _read(self, stop: StopRequest, *, sums: bool, first: int) -> Iterator[Arrival]:
        columns = self.columns
        if columns is not None and steps.is_parquet(self.file):
            yield from steps.from_parquet(self.file, columns, self.calendar)
            return
        with self._opened() as text:
            lines: Iterator[str] = iter(text)
            if self.follow and text is not sys.stdin:
                lines = steps.growing(text, lambda: stop.asked)
            if columns is None:
                yield from steps.from_lines(lines, sums=sums, first=first, calendar=self.calendar)
                return
            # Without a calendar the last step is complete only if no further row can follow.
            yield from steps.from_csv(
                lines,
                columns,
                calendar=self.calendar,
                ended=lambda: not (self.follow or stop.asked),
            )

    def _opened(self) -> TextIO:
        encoding = NO_OPTIONS.encoding if self.columns is None else self.columns.written.encoding
        if str(self.file) != "-":
            return steps.open_text(self.file, encoding)
        # Standard input is read as a file in this encoding is.
        if encoding != NO_OPTIONS.encoding and isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding=encoding, errors="replace")
        return sys.stdin


# --- the command ----------------------------------------------------------------------------------

# The group of options about when a step is over, and which rows it has.
STEPS = "Steps"


@click.command(cls=LayeredCommand, short_help="Publish a running total, step by step.")
@click.argument("file", type=click.Path(path_type=Path), default=Path("-"))
@option(
    "--horizon",
    group=STEPS,
    type=INTEGER,
    help="Largest number of steps.  [default: any number, which needs more noise]",
)
@option(
    "--step",
    group=STEPS,
    common=True,
    help="Column that says when; each of its values is one step.  [default: each line of FILE "
    "is one step]",
)
@option(
    "--from",
    "first",
    group=STEPS,
    common=True,
    help="Publish by a calendar that begins at this date, or date and time.",
)
@option(
    "--to",
    "last",
    group=STEPS,
    common=True,
    help="With --from: a date in the last step; or give --horizon, the number of steps.",
)
@option(
    "--every",
    group=STEPS,
    common=True,
    default="1d",
    show_default=True,
    help="With --from: length of a step, such as 15min, 1h, 1d, 1w, 1mo.",
)
@option("--steps", group=STEPS, help="Publish by a calendar of these names, in order: mon,tue,wed.")
@option(
    "--until",
    group=STEPS,
    help="With a calendar: last step to publish.  [default: the last that is over by this "
    "machine's clock]",
)
@option(
    "--value",
    group=QUESTION,
    common=True,
    help="Add up values instead of counting rows: COLUMN=LOW..HIGH[/STEP], or LOW..HIGH[/STEP] "
    "for lines. Values are clamped to these bounds.",
)
@option(
    "--by",
    group=QUESTION,
    common=True,
    help="Publish one total for each label: COLUMN=a,b,c.",
)
@option("--person", group=PERSONS, common=True, help=PERSON_HELP)
@option("--person-called", group=PERSONS, help=PERSON_CALLED_HELP)
@rows_per_person_option(
    "Contribution bound: the number of rows of one person that count, over all steps."
)
@neighbours_option()
@option(
    "--late",
    group=STEPS,
    type=click.Choice(["refuse", "count"]),
    default="refuse",
    show_default=True,
    help="What to do with rows whose step comes before the last one published: refuse them, or "
    "count them in the present step.",
)
@option(
    "--method",
    group=QUESTION,
    type=click.Choice(["auto", "tree", "toeplitz", "blt"]),
    default="auto",
    show_default=True,
    help="Counter mechanism; auto chooses the one whose largest variance is smallest.",
)
@option(
    "--epsilon",
    group=COST,
    common=True,
    help="Privacy cost of the whole stream, such as 1. The noise is Laplace, or with --delta also "
    "Gaussian.",
)
@option(
    "--delta",
    group=COST,
    default="0",
    show_default=True,
    help="With --epsilon: probability with which the protection may fail.",
)
@option(
    "--rho",
    group=COST,
    help="Privacy cost of the whole stream under zero-concentrated differential privacy, instead "
    "of --epsilon; the noise is Gaussian.",
)
@account_option
@option(
    "--budget",
    group=ACCOUNT,
    common=True,
    help="The most that the account may ever spend; needed when it is new. Write an epsilon, to "
    "which --delta is added; with --rho, a rho.",
)
@option(
    "--name",
    group=ACCOUNT,
    help="Public name of the data set, the same for all files of one stream."
    "  [default: the name of FILE]",
)
@option(
    "--key",
    group=ACCOUNT,
    common=True,
    required=True,
    help="Name of the stream. The same key goes on where the stream stopped, and costs nothing.",
)
@charged_option
@option(
    "--follow",
    group=STEPS,
    is_flag=True,
    help="At the end of FILE, wait for more lines until interrupted.",
)
@option(
    "--more",
    group=STEPS,
    is_flag=True,
    help="For lines without names: FILE holds only new lines, to be added after the last step. "
    "Without it, FILE holds all lines from the beginning of the stream.",
)
@option("--history", group=OUTPUT, is_flag=True, help="First print the steps published before.")
@option(
    "--save",
    group=OUTPUT,
    common=True,
    type=NewFile(),
    help="At the end, save the totals for sfumato report.",
)
@option(
    "--plot",
    group=OUTPUT,
    common=True,
    type=Picture(),
    help="At the end, draw the totals: .svg, .png or .pdf.",
)
@text_options
@words_options
@json_ignored_option
@gathers(StreamSettings)
def stream(
    settings: StreamSettings,
    follow: bool,
    more: bool,
    history: bool,
    save: Path | None,
    plot: Path | None,
) -> None:
    """Publish the running total of FILE, or of standard input: one line of JSON per step.

    FILE has one increment per line (or a name, a comma and an increment), or it is CSV with a
    header, or Parquet, whose rows --step groups into steps. One cost pays for the whole stream.

    \b
    Example:
      sfumato stream flights.parquet --step date --from 2013-01-01 \\
        --to 2013-12-31 --epsilon 1 --budget 1 --key flights
    \f
    With a calendar (--from and --to, or --steps) each step is published once it is over, whether
    or not it has rows. Rows outside the calendar, and rows that arrive after their step was
    published, are not counted. Without a calendar the names of the steps are taken from the rows,
    and are not protected.

    Each step is stored on disk before it is printed. Stopped at any point and run again, the
    command prints the new steps and no other.
    """
    counter, columns = settings.counter()
    steps.require_step_column(columns, parquet=steps.is_parquet(settings.file))
    if not settings.from_stdin:
        steps.require_columns(settings.file, columns)
    source = StreamInput(settings.file, columns, counter.calendar, settings.until, follow)
    stop = StopRequest()
    with stop.on_signals(), settings.publisher() as publisher:
        opened = publisher.open(
            counter,
            key=settings.key,
            epsilon=settings.epsilon,
            delta=settings.delta,
            rho=settings.rho,
        )
        with opened:
            first = opened.step + 1 if more else 1
            try:
                _publish_steps(opened, source, first=first, history=history, stop=stop)
            except BrokenPipeError:
                # Whoever reads stdout has left, and may want the files alone.
                _write_files(opened, save, plot)
                raise
            said = _write_files(opened, save, plot)
    print_messages(*said)


def _write_files(opened: Stream, save: Path | None, plot: Path | None) -> list[str]:
    """Write the files that were asked for; return what to say of them."""
    if save is None and plot is None:
        return []
    release = opened.history()
    said = [] if save is None else [f"Saved: {release.save(save)}"]
    return said + picture_of(release.plot, plot)


def _publish_steps(
    opened: Stream, source: StreamInput, *, first: int, history: bool, stop: StopRequest
) -> None:
    """Publish and print steps until the input ends or a signal comes."""
    printed = opened.step
    if history:
        for total in opened:
            _print(total)
    progress = Progress(printed, opened.horizon)
    arrivals = source.arrivals(stop, sums=opened.counter.interval is not None, first=first)
    for total in push_all(opened, stop.until_asked(arrivals)):
        # A row of a step published before changes nothing, and gives the stored total again.
        if total.step > printed:
            printed = total.step
            _print(total)
            progress.at(printed)
    if source.calendar is not None and source.n_over > opened.step and not stop.asked:
        # Steps that are over are published even if no row came, or their absence would show.
        for total in opened.advance(source.calendar.name(source.n_over - 1)):
            _print(total)
            progress.at(total.step)
    progress.end()
    _tell_end(opened, source, was_stopped=stop.asked)


def _tell_end(opened: Stream, source: StreamInput, *, was_stopped: bool) -> None:
    """Say what was published, and what is not protected."""
    if source.columns is not None and source.calendar is None:
        print_messages(
            f"Not protected: which {source.columns.step} has rows at all. "
            "A calendar hides it: --from and --to, or --steps."
        )
    guarantee = opened.history().guarantee
    done = "Stopped" if was_stopped else "Done"
    print_messages(
        f"{done} after step {opened.step:,}{_of(opened.horizon)}. {guarantee.sentence()}",
        guarantee.counted,
    )
    if was_stopped:
        print_messages("The same command goes on from here.")


class Progress:
    """The step reached and the speed, on stderr: only if stderr is a terminal and stdout is not."""

    def __init__(self, start: int, horizon: int | None) -> None:
        self._start = start
        self._horizon = horizon
        self._began = time.monotonic()
        self._last_report = 0.0
        self._on = sys.stderr.isatty() and not sys.stdout.isatty()

    def at(self, step: int) -> None:
        """Report a step, unless the last report is recent."""
        now = time.monotonic()
        # Two reports are half a second apart.
        if self._on and now - self._last_report > 0.5:
            seconds = max(now - self._began, 1e-9)
            rate = (step - self._start) / seconds
            text = f"\rstep {step:,}{_of(self._horizon)}, {rate:,.0f} steps/s "
            click.echo(text, err=True, nl=False)
            self._last_report = now

    def end(self) -> None:
        """Move to the next line, if anything was reported."""
        if self._on and self._last_report:
            click.echo("", err=True)


def _of(horizon: int | None) -> str:
    return "" if horizon is None else f" of {horizon:,}"


def _print(total: Total) -> None:
    """Print a step as one line of JSON; with categories each number is an object by category.

    ``about`` says which rows the numbers are of.
    """
    line: dict[str, object] = {
        "step": total.step,
        "event": total.event or None,
        "about": total.about,
    }
    for name in ("value", "low", "high", "all_low", "all_high"):
        number = getattr(total, name)
        key = "total" if name == "value" else name
        if isinstance(number, np.ndarray):
            plain = [_plain(total) for total in number]
            line[key] = dict(zip(total.names, plain, strict=True))
        else:
            line[key] = _plain(number)
    # Not click.echo: another process reads the line, and must have it before the next step begins.
    print(plain_json(json.dumps(line)), flush=True)


def _plain(number: SupportsFloat) -> int | float:
    return int(number) if isinstance(number, Integral) else round(float(number), 6)
