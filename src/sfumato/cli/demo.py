"""``sfumato demo``: publish two real tables, and write a report."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.answers.release import accuracy_sentence
from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, say, scanning, talk


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder to write the report, the ledger and the releases to.",
)
@json_option
def demo(out: Path, as_json: bool) -> None:
    """Publish two example tables that come with Sfumato, and write a report.

    The tables are the flights out of New York in 2013 and the cities of the world. A second run
    prints the same answers and spends nothing.
    """
    from sfumato.demo.run import publish

    with scanning() as progress:
        result = publish(out, progress)
    if as_json:
        emit_json(
            {
                "report": str(result.report),
                "ledger": str(result.ledger),
                "releases": [str(path) for path in result.saved],
            }
        )
        return
    for release in result.releases:
        talk(f"{release.heading}: {accuracy_sentence(release)}")
    talk(f"Ledger: {result.ledger}")
    say(f"Report: {result.report.resolve()}")
