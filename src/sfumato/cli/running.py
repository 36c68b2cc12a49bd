"""Running a command line: errors become one message on stderr and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from sfumato.cli.commands import cli

INTERRUPTED = 130  # the exit code that shells give to a program ended by Ctrl-C


def main(args: Sequence[str] | None = None) -> None:
    """Run a command line, by default that of this process, and exit with its code."""
    sys.exit(run(list(sys.argv[1:] if args is None else args)))


def run(args: list[str]) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    args : list of str
        The words after ``sfumato``.

    Returns
    -------
    int
        0 done, 2 usage, 3 budget, 4 data, 5 ledger, 70 a bug in Sfumato, 130 interrupted.
    """
    from sfumato.errors import InternalError, SfumatoError

    try:
        outcome: object = cli.main(args=args, prog_name="sfumato", standalone_mode=False)
        code = outcome if isinstance(outcome, int) else 0
    except click.exceptions.Abort:
        _say_interrupted()
        code = INTERRUPTED
    except click.ClickException as error:
        code = _show_refusal(args, error)
    except (SfumatoError, InternalError) as error:
        code = _show_error(args, str(error), error, error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has left, as `head` does. Without this, Python would complain when
        # it flushes stdout at exit.
        sys.stdout = None
        code = 0
    except Exception as error:
        # The text of an unforeseen error may quote a value of the data, so it is never printed.
        code = _show_error(args, _bug(error), error, InternalError.exit_code)
    return code


def _say_interrupted() -> None:
    click.echo(
        "Stopped. A charge that was made stands: "
        "run the same command again, and it goes on without paying twice.",
        err=True,
    )


def _show_refusal(args: list[str], error: click.ClickException) -> int:
    """Print what click refused, and return its exit code. A group alone prints its help."""
    # Before click 8.2, a group alone printed its help by itself.
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        click.echo(error.format_message(), err=True)
        return error.exit_code
    from sfumato.cli.refusals import in_parts

    refusal = in_parts(error, args)
    return _show_error(args, str(refusal), refusal, error.exit_code)


def _show_error(args: list[str], message: str, error: Exception, code: int) -> int:
    """Print an error with its notes, as text or with --json as JSON, and return its exit code."""
    from sfumato.errors import printable

    notes = list(getattr(error, "__notes__", []))
    if "--json" in args:
        import json

        found = {
            "error": type(error).__name__,
            "message": message,
            "notes": notes,
            "exit_code": code,
        }
        click.echo(json.dumps(found), err=True)
        return code
    click.echo(click.style("Error: ", fg="red", bold=True) + printable(message), err=True)
    for note in notes:
        click.echo(printable(note), err=True)
    return code


def _bug(error: Exception) -> str:
    """The message for an unforeseen error: where it happened, and nothing that it says."""
    from sfumato.errors import place_of

    return f"A bug in Sfumato: {place_of(error)}. Please report this line; it holds no data."
