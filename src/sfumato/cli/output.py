"""How commands speak: tables and JSON on stdout, progress and remarks on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from sfumato.answers.codec import to_bytes
from sfumato.answers.release import Release, accuracy_sentence
from sfumato.errors import DataError, printable, printable_lines

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.progress import Progress

ROWS_SHOWN = 20
PATIENCE = 1.0  # seconds before a progress bar appears


def talk(message: str) -> None:
    """Say something to the person, not to the pipe."""
    click.echo(printable_lines(message), err=True)


def say(message: str) -> None:
    """Print text on stdout."""
    click.echo(printable_lines(message))


def emit_json(value: object) -> None:
    """Print JSON on stdout: the same value, with what would steer a terminal as JSON's own escapes."""
    click.echo(plain_json(to_bytes(value).decode()))


def plain_json(text: str) -> str:
    """JSON without a character that steers a terminal or hides in it; what is read back is the same. Line breaks stand between tokens.

    >>> plain_json('"a\\u202eb"') == '"a' + chr(92) + 'u202eb"'
    True
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c == "\n" or printable(c) == c else json.dumps(c)[1:-1] if c != "\x7f" else "\\u007f"
        for c in text
    )


def table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None
) -> None:
    """Print a table: framed and shortened on a terminal, tab-separated and whole in a pipe."""
    if not sys.stdout.isatty():
        if title:
            click.echo(f"# {printable(title)}")
        click.echo(
            "\n".join("\t".join(printable(str(cell)) for cell in row) for row in [columns, *rows])
        )
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(
        title=None if title is None else Text(printable(title)),
        title_justify="left",
        title_style="bold",
        header_style="dim",
    )
    for i, column in enumerate(columns):
        drawn.add_column(
            Text(printable(column)),
            justify="right" if rows and isinstance(rows[0][i], int | float) else "left",
        )
    for row in rows[:ROWS_SHOWN]:  # as Text: a label in square brackets is no markup
        shown = (
            f"{cell:,}"
            if isinstance(cell, int)
            else f"{cell:g}"
            if isinstance(cell, float)
            else printable(str(cell))
            for cell in row
        )
        drawn.add_row(*map(Text, shown))
    Console().print(drawn)
    if len(rows) > ROWS_SHOWN:
        talk(f"... {len(rows) - ROWS_SHOWN:,} more rows: use --json, --out, or a pipe")


def show_releases(
    releases: Sequence[Release], *, as_json: bool, out: Path | None, charged: str | None = None
) -> None:
    """Print releases, and save them where a folder is given."""
    if out is not None:
        save_all(releases, out)
    if as_json:
        emit_json([_plain(release) for release in releases])
        return
    for release in releases:
        frame = _for_people(release.to_frame())
        table(
            frame.column_names,
            list(zip(*(column.to_pylist() for column in frame.columns), strict=True)),
            release.title,
        )
        talk(accuracy_sentence(release) or "It states no accuracy.")
        talk(release.guarantee.counted)
        talk(release.guarantee.sentence())
    receipt = releases[0].receipt
    if receipt is not None:
        talk(
            f"Receipt: {receipt.charged} charged to account {receipt.account!r}, entry {receipt.entry}, {receipt.time}."
        )
    if charged is not None:
        talk(charged)


def _for_people(frame: pa.Table) -> pa.Table:
    """On a terminal bins have their names only; in a pipe they keep their edges as numbers."""
    ends = [f"{name}{end}" for name in frame.column_names for end in ("_lower", "_upper")]
    return (
        frame.drop_columns([name for name in ends if name in frame.column_names])
        if sys.stdout.isatty()
        else frame
    )


def _plain(release: Release) -> dict[str, object]:
    """A release as it is saved, and beside it what people are shown: the table, by columns, and how accurate it is, of which rows."""
    saved: dict[str, object] = msgspec.json.decode(to_bytes(release))
    return saved | {"table": release.to_frame().to_pydict(), "accuracy": accuracy_sentence(release)}


def save_all(releases: Sequence[Release], folder: Path) -> list[Path]:
    """Save releases as numbered JSON files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or "the folder cannot be made"
    else:
        paths = [
            release.save(folder / f"{i:02d}-{_slug(release.title)}.json")
            for i, release in enumerate(releases, 1)
        ]
        talk(f"Saved {len(paths)} release{'s' if len(paths) > 1 else ''} in {folder}")
        return paths
    raise DataError(f"saving to {folder}", reason, "Choose a folder that can be written")


def _slug(title: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())[:60]


@contextmanager
def scanning(what: str = "Reading") -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar for a scan that takes longer than a second, on a terminal only."""
    started = time.monotonic()
    bars: list[Progress] = []

    def report(done: int, total: int | None) -> None:
        if not bars and sys.stderr.isatty() and time.monotonic() - started > PATIENCE:
            bars.append(_bar())
            bars[0].start()
            bars[0].add_task(what, total=total, rate="")
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

    said, rate = TextColumn("{task.description}"), TextColumn("rows, {task.fields[rate]}")
    return Progress(
        said,
        BarColumn(),
        MofNCompleteColumn(),
        rate,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
