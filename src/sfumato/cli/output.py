"""How commands print: tables and JSON on stdout, progress and messages on stderr.

*Lines that fit* (``fitted``): what people read keeps to the width of their terminal.

Sentences are broken between words, on a terminal and, at 80 characters, where prose is piped to a
pager or a file. What programs read is never broken: tables in a pipe, JSON, plans, paths, SQL, and
messages on a stderr that is no terminal, where each stays one line.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import methodcaller
from typing import TYPE_CHECKING, TextIO, TypeAlias

import click
import msgspec

from sfumato.answers import (
    Release,
    accuracy_sentence,
    intervals_in_words,
    said_once,
    which_answers,
    without_edges,
)
from sfumato.basics import Kind, cell, to_bytes
from sfumato.errors import printable, printable_lines
from sfumato.privacy import Guarantee, common_cost

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.progress import Progress


# --- lines that fit -------------------------------------------------------------------------------

# Of prose in a pipe or file, and of a terminal that does not say how wide it is.
WIDTH = 80

# By how much the further lines of a broken one are indented.
HANGING = 4


def width_of(stream: TextIO) -> int | None:
    """How many characters a line of a terminal has; None where the stream is no terminal."""
    if not stream.isatty():
        return None
    stated = os.environ.get("COLUMNS", "")
    if stated.isascii() and stated.isdigit() and int(stated) > 0:
        return int(stated)
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except (OSError, ValueError, AttributeError):
        return WIDTH


def writes_file(stream: TextIO) -> bool:
    """Tell whether a stream writes into a file on a disk, and not to a terminal or a pipe."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):  # a stream in memory
        return False


def fitted(text: str, width: int | None, hanging: int = HANGING) -> str:
    """Text whose long lines are broken between words; unchanged without a width.

    A word that is longer than a line, such as a path, stays whole.

    >>> print(fitted("One idea a sentence.\\n  A second line of it.", 14, hanging=2))
    One idea a
      sentence.
      A second
        line of
        it.
    """
    if width is None:
        return text
    lines = []
    for line in text.split("\n"):
        # What follows in a long line is indented further than its beginning.
        n_blanks = len(line) - len(line.lstrip())
        indent = line[:n_blanks] + " " * hanging
        broken = textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        lines += broken if len(line) > width else [line]
    return "\n".join(lines)


# --- printing -------------------------------------------------------------------------------------

ROWS_SHOWN = 20
FrameOf: TypeAlias = "Callable[[Release], pa.Table]"


def print_messages(*messages: str) -> None:
    """Print messages for the person, on stderr."""
    for message in messages:
        click.echo(fitted(printable_lines(message), width_of(sys.stderr)), err=True)


def print_output(text: str) -> None:
    """Print on stdout what may be copied or read by a program: paths, plans, statements."""
    click.echo(printable_lines(text))


def prose(text: str, hanging: int = HANGING) -> None:
    """Print sentences on stdout, in lines that fit.

    ``hanging`` is by how much the further lines of a long one are indented.
    """
    width = width_of(sys.stdout) or WIDTH
    click.echo(fitted(printable_lines(text), width, hanging))


def emit_json(value: object) -> None:
    """Print a value as JSON on stdout."""
    click.echo(plain_json(to_bytes(value).decode()))


def plain_json(text: str) -> str:
    """JSON in which characters that steer a terminal, or hide in it, are escaped.

    What is read back is the same. Line breaks can only stand between tokens, and stay.

    >>> plain_json('"a\\u202eb"') == '"a' + chr(92) + 'u202eb"'
    True
    """
    if text.isascii() and text.isprintable():
        return text
    steering = {sign for sign in text if sign not in ("\n", printable(sign))}
    # json.dumps leaves DEL as it is.
    escaped = {sign: json.dumps(sign)[1:-1] for sign in steering} | {"\x7f": "\\u007f"}
    return "".join(escaped.get(sign, sign) for sign in text)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    title: str | None = None,
    kinds: Sequence[Kind] = (),
) -> None:
    """Print a table: framed and shortened on a terminal, tab-separated and whole in a pipe.

    ``kinds`` says of each column what its numbers are: thousands are parted in amounts.
    """
    if sys.stdout.isatty():
        amounts: list[Kind] = ["amount"] * len(columns)
        _framed_table(columns, rows, title, kinds or amounts)
        return
    if title:
        click.echo(f"# {printable(title)}")
    lines = ["\t".join(map(_field, row)) for row in [columns, *rows]]
    click.echo("\n".join(lines))


def _field(value: object) -> str:
    """A field in a pipe, as in CSV: empty where a row has no value, whole numbers without ".0"."""
    text = "" if value is None else printable(str(value))
    return text.removesuffix(".0") if isinstance(value, float) else text


def _framed_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    title: str | None,
    kinds: Sequence[Kind],
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Everything is passed as Text: in a plain str, rich would take a label in square brackets for
    # markup.
    drawn = Table(
        title=None if title is None else Text(printable(title)),
        title_justify="left",
        title_style="bold",
        header_style="dim",
    )
    for i, column in enumerate(columns):
        is_number = bool(rows) and isinstance(rows[0][i], int | float)
        drawn.add_column(Text(printable(column)), justify="right" if is_number else "left")
    shown = [
        _column_texts(column, kind)
        for column, kind in zip(zip(*rows[:ROWS_SHOWN], strict=True), kinds, strict=False)
    ]
    for texts in zip(*shown, strict=True):
        drawn.add_row(*map(Text, texts))
    Console().print(drawn)
    if len(rows) > ROWS_SHOWN:
        print_messages(f"... {len(rows) - ROWS_SHOWN:,} more rows: use --json, --out, or a pipe")


def _column_texts(column: Sequence[object], kind: Kind) -> list[str]:
    """The fields of a column; numbers with decimals have equally many, so that points align."""
    texts = [
        printable(value) if isinstance(value, str) else printable(cell(value, kind))
        for value in column
    ]
    if not all(isinstance(value, float | None) for value in column):
        return texts
    decimals = [len(text.partition(".")[2]) for text in texts]
    if "e" in "".join(texts) or not any(decimals):
        return texts
    # A value that is missing, or is not a number, has no digits to align.
    return [
        f"{text.partition('.')[0]}.{text.partition('.')[2]:0<{max(decimals)}}"
        if any(map(str.isdigit, text))
        else text
        for text in texts
    ]


def show_releases(
    releases: Sequence[Release],
    *,
    as_json: bool,
    charged: str,
    frame_of: FrameOf = methodcaller("to_frame"),
) -> None:
    """Print releases. Files of them are written before: see ``AnswerFiles``.

    ``frame_of`` makes the table that is printed of each.
    """
    if as_json:
        # As it is saved, and in addition its table by columns and its accuracy.
        emit_json(
            [
                msgspec.json.decode(to_bytes(release))
                | {"table": frame_of(release).to_pydict(), "accuracy": accuracy_sentence(release)}
                for release in releases
            ]
        )
        return
    for release in releases:
        _show_release(release, frame_of, named=len(releases) > 1)
    counted = [release.guarantee.counted for release in releases]
    # One sentence about all answers needs no subject.
    print_messages(*(counted[:1] if len(set(counted)) == 1 else said_once(counted)))
    # The cost in a guarantee is that of each answer, not of all together.
    print_messages(*_guaranteed([release.guarantee for release in releases]))
    receipt = releases[0].receipt
    if receipt is not None:
        print_messages(
            f"Receipt: {receipt.charged} charged to account {receipt.account!r}, "
            f"entry {receipt.entry}, {receipt.moment}."
        )
        if receipt.picked:
            print_messages(f"Picked: {receipt.picked}")
    print_messages(charged)


def _guaranteed(guarantees: Sequence[Guarantee]) -> list[str]:
    """The promises, each once; where costs differ in their last digits, that of the largest."""
    common = common_cost([guarantee.measure for guarantee in guarantees])
    if common is None:
        together = _in_one_sentence(guarantees)
        if together is not None:
            return [together]
    if common is None or not common.is_rounded:
        return said_once(guarantee.sentence() for guarantee in guarantees)
    rounded = (msgspec.structs.replace(guarantee, measure=common.cost) for guarantee in guarantees)
    return said_once(
        guarantee.sentence().replace(str(common.cost), str(common), 1) for guarantee in rounded
    )


def _in_one_sentence(guarantees: Sequence[Guarantee]) -> str | None:
    """What promises of several costs have in common, and the costs; None if they differ in more."""
    answers_at: dict[str, list[int]] = {}
    common = set()
    for number, guarantee in enumerate(guarantees):
        cost = str(guarantee.measure)
        answers_at.setdefault(cost, []).append(number)
        before, stated, after = guarantee.sentence().partition(f", {cost}, for ")
        common.add(f"{before} for {after.removesuffix('.')}" if stated else "")
    if len(common) > 1 or "" in common or len(answers_at) < 2:
        return None
    costs = [
        f"{which_answers(numbers, len(guarantees)).lower()} at {cost}"
        for cost, numbers in answers_at.items()
    ]
    return f"{common.pop()}: {'; '.join(costs)}."


def _show_release(release: Release, frame_of: FrameOf, *, named: bool) -> None:
    """Print the table on stdout, and its accuracy on stderr.

    ``named``: whether the accuracy says of which answer it is, one of several.
    """
    # On a terminal each table of a family stands by itself, without the columns of the others.
    members = release.members if sys.stdout.isatty() else {}
    for heading, member in members.items() or [(release.heading, release)]:
        frame = _for_people(member, frame_of)
        columns = [column.to_pylist() for column in frame.columns]
        kinds = list(map(member.kind_of_column, frame.column_names))
        table(frame.column_names, list(zip(*columns, strict=True)), heading, kinds)
    about = f"{printable(release.heading)}: " if named else ""
    sentences = (*release.facts, accuracy_sentence(release) or "It states no accuracy.")
    print_messages(*(f"{about}{sentence}" for sentence in sentences))
    print_messages(*_on_bins(release))


def _on_bins(release: Release) -> list[str]:
    """Return which bins hold unequally many whole numbers, as sentences."""
    from sfumato.questions.histogram.bins import uneven
    from sfumato.questions.histogram.question import HistogramRelease

    if not isinstance(release, HistogramRelease) or release.rows is not None:
        return []
    # A remark that does not begin with "if" begins with the name of a column, written as it is.
    return [
        f"If {remark.removeprefix('if ')}." if remark.startswith("if ") else f"{remark}."
        for remark in uneven(release.lattice)
    ]


def _for_people(release: Release, frame_of: FrameOf) -> pa.Table:
    """On a terminal bins have their names only; in a pipe they keep their edges as numbers.

    Likewise axes and labels have their names for people on a terminal only. Estimates have the
    digits that their intervals leave to them; JSON has all.
    """
    if not sys.stdout.isatty():
        return release.in_digits(frame_of(release))
    from sfumato.questions.persons.release import PersonsRelease

    people = release.for_people()
    frame = without_edges(people.in_digits(frame_of(people)))
    if isinstance(release, PersonsRelease):
        # Its eleven columns of numbers do not fit on a terminal.
        return intervals_in_words(frame, shares=["kept"])
    return frame


@contextmanager
def scanning() -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar for a scan that takes longer than a second; on a terminal only.

    Yields
    ------
    callable
        To be called with the number of rows read and the total, None if it is not known.
    """
    started = time.monotonic()
    bars: list[Progress] = []

    def report(done: int, total: int | None) -> None:
        # A bar appears after a second.
        if not bars and sys.stderr.isatty() and time.monotonic() - started > 1.0:
            bars.append(_bar())
            bars[0].start()
            bars[0].add_task("Reading", total=total, rate="")
        for bar in bars:
            rate = f"{done / (time.monotonic() - started):,.0f} rows/s"
            bar.update(bar.task_ids[0], completed=done, total=total, rate=rate)

    try:
        yield report
    finally:
        for bar in bars:
            bar.stop()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows, {task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
