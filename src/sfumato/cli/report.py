"""``sfumato report``: saved releases as one page."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, say
from sfumato.cli.saved import saved
from sfumato.cli.targets import NewFile


@click.command()
@click.argument("releases", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=NewFile(),
    default=Path("report.html"),
    show_default=True,
    help="The page to write.",
)
@click.option("--title", help="Heading of the page.")
@json_option
def report(releases: tuple[Path, ...], out: Path, title: str | None, as_json: bool) -> None:
    """Turn RELEASES (JSON files that were saved) into one HTML page that needs no network."""
    from sfumato.pages import report as write

    page = write([saved(path) for path in releases], out, title=title)
    if as_json:
        emit_json({"report": str(page)})
    else:
        say(str(page))
