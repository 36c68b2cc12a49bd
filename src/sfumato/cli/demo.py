"""``sfumato demo``: the main job on real input."""

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
    help="Folder for report, ledger and releases.",
)
@json_option
def demo(out: Path, as_json: bool) -> None:
    """Publish delays of the New York flights of 2013 and a map of the world's cities, and write a report.

    Run again, it prints the same answers and spends nothing.
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
        talk(f"{release.title}: {accuracy_sentence(release)}")
    talk(f"Ledger: {result.ledger}")
    say(f"Report: {result.report.resolve()}")
