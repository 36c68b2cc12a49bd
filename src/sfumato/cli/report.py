"""``sfumato report``: write saved releases as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, say
from sfumato.cli.output_paths import NewFile
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
@json_option
def report(releases: tuple[Path, ...], out: Path, title: str | None, as_json: bool) -> None:
    """Write RELEASES, saved as JSON files, as one HTML page that needs no network.

    \b
    Example:
      sfumato report releases/*.json --out report.html
    """
    from sfumato.pages import report as write

    page = write([saved(path) for path in releases], out, title=title)
    if as_json:
        emit_json({"report": str(page)})
    else:
        say(str(page))
