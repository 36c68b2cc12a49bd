"""``sfumato preview`` and ``sfumato release``: several questions in one TOML file."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path

import click

from sfumato.answers import Preview, Release
from sfumato.cli.layers import LayeredCommand
from sfumato.cli.options import (
    INTEGER,
    EngineSettings,
    charged_option,
    engine_options,
    files_options,
    gathers,
    json_option,
    opened_to_charge,
    paid_options,
    report_option,
)
from sfumato.cli.output import emit_json, prose, scanning, show_releases, talk
from sfumato.cli.paths import files_read, require_unread
from sfumato.cli.publishing import AnswerFiles, Forms, day_of, page_of, paid
from sfumato.data.addresses import server_of
from sfumato.data.reader import Reader
from sfumato.data.source import Source
from sfumato.privacy import (
    ApproxDP,
    CentralMeasure,
    PureDP,
    Unit,
    belief,
    compose,
    plan_epsilon,
    rule_of,
)
from sfumato.publishing.divisions import Choice
from sfumato.publishing.plan_file import PlanFile, domain_of, read_plan

DELTA = Fraction(1, 10**6)
"""The delta at which the cost of a whole plan is also shown, where it is tighter that way."""

WORTH_SAYING = Fraction(99, 100)  # of the sum: a plan that costs more than this saves nothing


@click.command(cls=LayeredCommand, short_help="Show the cost and accuracy of a plan.")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--rows",
    type=INTEGER,
    help="Your own public guess of the number of rows, where an accuracy depends on it.",
)
@json_option
def preview(plan: Path, rows: int | None, as_json: bool) -> None:
    """Show what PLAN, a TOML file, would cost and how accurate its answers would be.

    No data are read, and nothing is spent.

    \b
    Example:
      sfumato preview examples/flights.toml
    """
    from sfumato.publishing.plan import check_rows
    from sfumato.publishing.previews import previews as previewed

    spec = read_plan(plan)
    check_rows(rows)
    domain = domain_of(spec)
    unit = spec.source.unit(domain)
    planned = spec.plan()
    total = spec.budget.total
    rule = None if total is None else rule_of(total)
    previews = previewed(planned, domain, unit, spec.release.stated(planned), rows=rows, rule=rule)
    if as_json:
        emit_json([_plain(answer, previews.choice) for answer in previews])
        return
    for text in previews.answers():
        prose(text)
    if previews.choice is not None:
        prose(f"Picked: {previews.choice}")
        prose(_at(previews.choice.cost, unit))
    elif len(previews) > 1:
        prose(_together([answer.cost for answer in previews], unit))


def _plain(answer: Preview, choice: Choice | None) -> dict[str, object]:
    """A preview as JSON, with what was picked for its plan."""
    plain = {"preview": answer, "accuracy": answer.accuracy(), "counted": answer.counted}
    if choice is None:
        return plain
    picked = {"cost": choice.cost, "in_rho": choice.in_rho, "sentences": choice.sentences}
    return plain | {"picked": picked}


def _at(cost: CentralMeasure, unit: Unit) -> str:
    """What a whole plan costs at most, and what that allows an adversary to learn."""
    risk = belief.warning(cost, unit) or belief.sentence(cost, unit)
    return f"Together: at most {cost}.\n  {risk}"


def _together(costs: list[CentralMeasure], unit: Unit) -> str:
    """What a whole plan costs, and what that allows an adversary to learn."""
    whole = compose(costs)
    text = f"Together: {whole} by addition"
    pure = [cost for cost in costs if isinstance(cost, PureDP)]
    # Tighter composition needs dp-accounting, which the extra `risk` installs.
    if len(pure) == len(costs) and importlib.util.find_spec("dp_accounting") is not None:
        fixed = plan_epsilon(pure, DELTA)
        if fixed <= WORTH_SAYING * sum(cost.epsilon for cost in pure):
            text += f"; as one fixed plan, it is also {ApproxDP(fixed, DELTA)}"
    return f"{text}.\n  {belief.warning(whole, unit) or belief.sentence(whole, unit)}"


@click.command(cls=LayeredCommand, short_help="Publish the answers to a plan.")
@click.argument("plan", type=click.Path(path_type=Path))
@charged_option
@files_options
@report_option
@paid_options
@engine_options
@json_option
@gathers(EngineSettings)
@gathers(AnswerFiles)
def release(
    files: AnswerFiles,
    engine: EngineSettings,
    plan: Path,
    ledger: str | Path,
    page: Path | None,
    fresh: bool,
    stored: bool,
    as_json: bool,
) -> None:
    """Publish the answers to PLAN, a TOML file. Its account is charged first.

    The same plan on the same data again prints the same stored answers and costs nothing. If the
    data changed since, nothing is charged before you say what you want: --stored or --fresh, or a
    new version of the data in the plan.

    \b
    Example:
      sfumato release examples/flights.toml --report report.html
    """
    spec = read_plan(plan)
    files.require(spec.plan().settled(domain_of(spec)).questions, spec.source.path)
    require_unread("--report", page, [plan, *files_read(spec.source.path)])
    with engine.opened(spec.source.path) as table:
        releases, remaining = _released(spec, ledger, table, fresh=fresh, stored=stored)
    with paid():
        said = files.write(releases, Forms()) + page_of(releases, page)
    day = day_of(releases[0])
    spent = "Paid."
    if releases[0].replayed:
        spent = f"Nothing was spent: these are the stored answers{day}."
    show_releases(releases, as_json=as_json, charged=f"{spent} {remaining}.")
    talk(*said)


def _released(
    spec: PlanFile, ledger: str | Path, table: Reader | None, *, fresh: bool, stored: bool
) -> tuple[tuple[Release, ...], str]:
    """The answers, and what remains of the account afterwards."""
    from sfumato.cli.publishing import remaining_of
    from sfumato.publishing.publisher import CommandPublisher

    budget = spec.budget
    rows = source_of(spec, table)
    publisher = CommandPublisher(
        rows,
        ledger=opened_to_charge(ledger),
        account=budget.account,
        budget=budget.total,
        ceiling=budget.most,
    )
    with publisher, scanning() as progress:
        releases = publisher.release(
            spec.plan(),
            key=spec.release.key,
            fresh=fresh,
            stored=stored,
            progress=progress,
            epsilon=spec.release.epsilon,
            delta=spec.release.delta,
            rho=spec.release.rho,
        )
        return releases, remaining_of(publisher)


def source_of(spec: PlanFile, table: Reader | None = None) -> Source:
    """Open the source of a plan, and say before which server is asked: a stranger may name it."""
    server = server_of(spec.source.path) if table is None else None
    if server is not None:
        talk(f"The plan reads its table from the PostgreSQL server {server}.")
    return spec.source.opened(domain_of(spec), table)
