"""``sfumato demo``: publish two real tables, and write a report."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.answers.release import accuracy_sentence
from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, say, scanning, talk
from sfumato.cli.output_paths import NewFolder
from sfumato.errors import BudgetExceeded


@click.command()
@click.option(
    "--out",
    type=NewFolder(),
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

    try:
        with scanning() as progress:
            result = publish(out, progress)
    except BudgetExceeded as error:
        error.add_note(
            "The demo was published to this folder by another copy of Sfumato: its tables are other"
            " files. Name a new folder: sfumato demo --out FOLDER."
        )
        raise
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
