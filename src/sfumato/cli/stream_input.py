"""Reading the steps of a stream, and deciding which of them are over."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path

from sfumato.cli.stopping import StopRequest
from sfumato.data import steps
from sfumato.data.steps import Arrival, StepColumns
from sfumato.errors import UsageError
from sfumato.questions.counters.calendar import DeclaredSteps


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
        self.n_over = self._steps_over() if until is None else self._index_of(until) + 1

    def _steps_over(self) -> int:
        if self.calendar is None or self.columns is None:
            return 0
        return self.calendar.over(dt.datetime.now())

    def _index_of(self, until: str) -> int:
        index = None if self.calendar is None else self.calendar.place(until)
        if index is None:
            raise UsageError(
                f"--until {until}",
                "it is no step of a calendar",
                "Give --from and --to, or --steps, and one of these steps",
            )
        return index

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
        from_stdin = str(self.file) == "-"
        text = sys.stdin if from_stdin else steps.open_text(self.file)
        with text:
            lines: Iterator[str] = iter(text)
            if self.follow and not from_stdin:
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
