"""``sfumato audit``: test whether each mechanism keeps within its privacy claim."""

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
from sfumato.cli.answer_files import page_of
from sfumato.cli.options import json_option, report_option
from sfumato.cli.output import emit_json, table, talk
from sfumato.errors import InternalError


@click.command()
@click.option(
    "--quick/--deep",
    default=True,
    help="Quick takes a minute or two; deep takes half an hour, on larger data and with more runs."
    "  [default: quick]",
)
@click.option(
    "--only",
    metavar="TEXT",
    help="Audit only the subjects with this text in their name.  [default: all]",
)
@report_option
@json_option
def audit(quick: bool, only: str | None, page: Path | None, as_json: bool) -> int:
    """Test whether each mechanism keeps within its privacy claim.

    The audit attacks the code and prints, beside each claim, how much privacy loss it could show.
    Exit code 70 means that a mechanism exceeds its claim or could not be judged.

    exact: the largest privacy loss over small neighbouring data sets, computed from the code that
    publishes. sampled: a lower bound on the loss, from outputs alone, at 99.9% confidence. Both
    are in the unit of the claim, epsilon or rho.

    least fault: the smallest loss that this run would have detected, as a multiple of the claim.
    A verdict of "no power" says that the run would have missed even a mechanism with half the
    noise. It is neither a pass nor a failure; the last line counts such rows.
    """
    refused = discover()
    if only is not None and only in refused:
        raise refused[only]
    with _progress_bar() as progress:
        findings = audited(not quick, progress, only=only, processes=os.cpu_count() or 1)
    said = page_of(findings, page, "What an audit found")
    if as_json:
        emit_json(findings)
    else:
        _show(findings)
        talk(sentence(findings))
    if only is None:
        for refusal in refused.values():
            talk(f"Left out: {refusal}")
    for line in said:
        talk(line)
    return InternalError.exit_code if any(finding.failed for finding in findings) else 0


def _show(findings: list[Finding]) -> None:
    """Print one table in a pipe; on a terminal, which shortens long tables, one per subject."""
    if not sys.stdout.isatty():
        table(COLUMNS, [finding.row() for finding in findings])
        return
    for name, group in groupby(findings, key=lambda finding: finding.subject):
        table(COLUMNS[1:], [finding.row()[1:] for finding in group], title=name)


@contextmanager
def _progress_bar() -> Iterator[Progress | None]:
    """A progress bar on stderr, if stderr is a terminal."""
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
