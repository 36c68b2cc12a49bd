"""Running a command line: errors become one message on stderr and an exit code.

``StopRequest`` stops a command at a signal, between two steps and never within one.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO, TypeVar

import click

from sfumato.cli.commands import ReaderLeft, cli, in_parts
from sfumato.errors import (
    DataError,
    InternalError,
    SfumatoError,
    SfumatoWarning,
    place_of,
    printable,
)

ERROR = "Error:"


def main(args: Sequence[str] | None = None) -> None:
    """Run a command line, by default that of this process, and exit with its code."""
    # Nearly all that a command makes it needs until it ends: to look for garbage all the time, as
    # Python does by default, takes a tenth of a short command.
    gc.set_threshold(100_000)
    if sys.stdout is None:
        # The shell closed it, as in `sfumato demo >&-`: nobody wants to see what is printed.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open until the end)
    words = sys.argv[1:] if args is None else args
    sys.exit(run(list(words)))


def run(args: list[str]) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    args : list of str
        The words after ``sfumato``.

    Returns
    -------
    int
        0 done, 2 usage, 3 budget, 4 data, 5 ledger, 70 a bug in Sfumato, 130 interrupted, 141 if
        whoever read stdout has left, as `head` does.
    """
    try:
        with _warnings_as_messages():
            outcome: object = cli.main(args=args, prog_name="sfumato", standalone_mode=False)
        code = outcome if isinstance(outcome, int) else 0
    except click.exceptions.Abort:
        _tell(
            "Stopped. A charge that was made stands: "
            "run the same command again, and it goes on without paying twice."
        )
        # Shells give this code to a program that Ctrl-C has ended.
        code = 130
    except click.ClickException as error:
        code = _show_refusal(args, error)
    except (SfumatoError, InternalError) as error:
        code = _show_error(args, str(error), error, error.exit_code)
    except ReaderLeft:
        # Otherwise Python would complain when it flushes stdout at exit. Shells give this code to
        # a program whose output nobody reads any more.
        sys.stdout = None
        code = 141
    except Exception as error:
        refusal = _unprintable(error)
        if refusal is not None:
            code = _show_error(args, str(refusal), refusal, refusal.exit_code)
        else:
            # The text of an unforeseen error may quote a value of the data, so it is not printed.
            bug = f"A bug in Sfumato: {place_of(error)}. Please report this line; it holds no data."
            code = _show_error(args, bug, error, InternalError.exit_code)
    return code


@contextmanager
def _warnings_as_messages() -> Iterator[None]:
    """Say our own warnings as messages, without the line of code that Python adds."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", SfumatoWarning)
        show = warnings.showwarning

        def tell(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, SfumatoWarning):
                _tell(f"Note: {message}")
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = tell
        yield


def _unprintable(error: Exception) -> DataError | None:
    """The error of an output that cannot be written, such as a file on a full disk."""
    names = {frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)}
    # Two functions write to stdout: click's, and that of a step of a stream.
    printed = names & {"echo", "_print"}
    if not printed or not isinstance(error, OSError):
        return None
    # Python would try again at exit, and complain.
    sys.stdout = None
    return DataError(
        "printing the output",
        error.strerror or "it cannot be written",
        "Print to another place; what was paid for is stored, and costs nothing again",
    )


def _tell(message: str) -> None:
    """Print a message on stderr, its first word in red if it is an error."""
    from sfumato.cli.output import fitted, width_of

    text = fitted(message, width_of(sys.stderr))
    if text.startswith(ERROR):
        text = click.style(ERROR, fg="red", bold=True) + text.removeprefix(ERROR)
    click.echo(text, err=True)


def _show_refusal(args: list[str], error: click.ClickException) -> int:
    """Print what click refused, and return its exit code. A group alone prints its help."""
    # Before click 8.2, a group alone printed its help by itself.
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        click.echo(error.format_message(), err=True)
        return error.exit_code
    refusal = in_parts(error, args)
    return _show_error(args, str(refusal), refusal, error.exit_code)


def _show_error(args: list[str], message: str, error: Exception, code: int) -> int:
    """Print an error with its notes, as text or with --json as JSON, and return its exit code."""
    notes = list(getattr(error, "__notes__", []))
    if "--json" in args:
        import json

        failure = {
            "error": type(error).__name__,
            "message": message,
            "notes": notes,
            "exit_code": code,
        }
        click.echo(json.dumps(failure), err=True)
        return code
    _tell(f"{ERROR} {printable(message)}")
    for note in notes:
        _tell(printable(note))
    return code


T = TypeVar("T")


class StopRequest:
    """Whether a signal (Ctrl-C, or SIGTERM) has asked the command to stop.

    While the command waits for input it stops at once; while it works on a step, it stops when
    that step is published and printed.
    """

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Catch SIGINT and SIGTERM while the block runs."""
        handlers = {
            number: signal.signal(number, self._caught)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _caught(self, number: int, frame: object) -> None:
        self.asked = True
        if self._waiting:
            raise _Stop

    def until_asked(self, items: Iterator[T]) -> Iterator[T]:
        """Pass items on until they end or a signal comes."""
        while not self.asked:
            # The handler may raise only between these two assignments, where nothing is half done:
            # an item is either not read yet, or returned.
            self._waiting = True
            try:
                item = next(items, None)
            except _Stop:
                return
            finally:
                self._waiting = False
            if item is None:
                return
            yield item


class _Stop(Exception):
    """A signal came while the command was waiting for input."""
