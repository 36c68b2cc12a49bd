"""``sfumato audit``: what every mechanism spends, beside what it claims."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import click

from sfumato.answers.registry import discover
from sfumato.audit import COLUMNS, Finding, sentence
from sfumato.audit import audit as audited
from sfumato.audit.findings import Progress
from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, table, talk
from sfumato.cli.targets import NewFile
from sfumato.errors import InternalError


@click.command()
@click.option(
    "--quick/--deep",
    default=True,
    help="A minute or two, or an hour: larger data, more runs.  [default: quick]",
)
@click.option("--only", metavar="TEXT", help="Audit the subjects with this text in their name.")
@click.option("--report", "page", type=NewFile(), help="Also write one HTML page.")
@json_option
def audit(quick: bool, only: str | None, page: Path | None, as_json: bool) -> int:
    """Show what every mechanism spends, beside what it claims. Exit code 70 if one spends more, or cannot be judged.

    Exact: the largest likelihood ratio over small neighbouring data sets, by the production code. Sampled: a lower bound from
    outputs alone, at 99.9 % confidence. Both are in the claim's own unit, epsilon or rho. Least fault: the smallest excess, in
    multiples of the claim, that the run would have seen. "no power": it would have missed half the noise, so it says nothing;
    that is no failure, and the last line counts such rows.
    """
    refused = discover()
    if only is not None and only in refused:
        raise refused[only]
    with _progress() as progress:
        findings = audited(not quick, progress, only=only, processes=os.cpu_count() or 1)
    if as_json:
        emit_json(findings)
    else:
        _show(findings)
        talk(sentence(findings))
    if only is None:
        for refusal in refused.values():
            talk(f"Left out: {refusal}")
    if page is not None:
        from sfumato.pages import report

        talk(f"Report: {report(findings, page, title='What an audit saw')}")
    return InternalError.exit_code if any(finding.failed for finding in findings) else 0


def _show(findings: list[Finding]) -> None:
    """One table in a pipe; on a terminal, where long tables are cut, one per subject."""
    if not sys.stdout.isatty():
        table(COLUMNS, [finding.row() for finding in findings])
        return
    for name, group in groupby(findings, key=lambda finding: finding.subject):
        table(COLUMNS[1:], [finding.row()[1:] for finding in group], title=name)


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar on stderr, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("Auditing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda done, total, name: bar.update(
            task, completed=done, total=total, description=name
        )
