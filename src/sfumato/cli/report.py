"""``sfumato report``: write saved releases as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, say
from sfumato.cli.output_paths import NewFile, require_unread
from sfumato.cli.saved import saved


@click.command()
@click.argument("releases", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=NewFile(),
    default=Path("report.html"),
    show_default=True,
    help="File to write the page to.",
)
@click.option("--title", help="Heading of the page.  [default: What was released]")
@click.option(
    "--for",
    "audience",
    type=click.Choice(["board", "technical"]),
    default="technical",
    show_default=True,
    help="Who reads it. For a board, it has no proofs, receipts, hashes and long tables.",
)
@json_option
def report(
    releases: tuple[Path, ...],
    out: Path,
    title: str | None,
    audience: Literal["board", "technical"],
    as_json: bool,
) -> None:
    """Write RELEASES, saved as JSON files, as one HTML page that needs no network.

    Its front page fits one screen. It prints on A4.

    \b
    Examples:
      sfumato report releases/*.json --out report.html
      sfumato report releases/*.json --for board --out board.html
    """
    from sfumato.reports import report as write

    require_unread("--out", out, releases)
    page = write([saved(path) for path in releases], out, title, audience=audience)
    if as_json:
        emit_json({"report": str(page)})
    else:
        say(str(page))
