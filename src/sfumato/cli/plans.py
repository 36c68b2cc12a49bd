"""``sfumato preview`` and ``sfumato release``: plans as TOML files."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path

import click

from sfumato.answers.release import Release
from sfumato.cli.options import (
    INTEGER,
    charged_option,
    fresh_option,
    json_option,
    opened,
    out_option,
)
from sfumato.cli.output import emit_json, say, scanning, show_releases, talk
from sfumato.cli.targets import NewFile
from sfumato.privacy import belief
from sfumato.privacy.composition import compose, plan_epsilon
from sfumato.privacy.measures import ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.publishing.plan_file import domain_of, read_plan

DELTA = Fraction(1, 10**6)


@click.command(short_help="Preview a plan.")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--rows", type=INTEGER, help="Your own public guess of the number of rows.")
@json_option
def preview(plan: Path, rows: int | None, as_json: bool) -> None:
    """Say what PLAN (a TOML file) would cost and how accurate its answers would be.

    Touches no data and spends nothing.
    """
    from sfumato.publishing.previewing import preview as foresee

    spec = read_plan(plan)
    cost = spec.release
    unit = Unit(spec.source.rows_per_person, spec.source.neighbours, spec.source.person)
    previews = foresee(
        spec.plan(),
        domain=domain_of(spec),
        unit=unit,
        rows=rows,
        epsilon=cost.epsilon,
        delta=cost.delta,
        rho=cost.rho,
    )
    if as_json:
        emit_json(
            [
                {"preview": one, "accuracy": one.accuracy(), "counted": one.counted}
                for one in previews
            ]
        )
        return
    for one in previews:
        say(str(one))
    if len(previews) > 1:
        say(_together([one.cost for one in previews], unit))


def _together(costs: list[CentralMeasure], unit: Unit) -> str:
    """What a plan promises as a whole: by addition, and, where it can be had, more tightly; and what that means."""
    text = f"Together: {compose(costs)} by addition"
    pure = [cost for cost in costs if isinstance(cost, PureDP)]
    if len(pure) == len(costs) and importlib.util.find_spec("dp_accounting") is not None:
        text += f"; as one fixed plan, {ApproxDP(plan_epsilon(pure, DELTA), DELTA)}"
    whole = compose(costs)
    return f"{text}.\n  {belief.warning(whole, unit) or belief.sentence(whole, unit)}"


@click.command(short_help="Publish a plan.")
@click.argument("plan", type=click.Path(path_type=Path))
@charged_option
@out_option
@click.option("--report", "page", type=NewFile(), help="Also write one HTML page.")
@fresh_option
@json_option
def release(
    plan: Path, ledger: Path, out: Path | None, page: Path | None, fresh: bool, as_json: bool
) -> None:
    """Publish the answers to PLAN (a TOML file), at the expense of its account.

    The same plan on the same data again prints the same stored answers and costs nothing.
    """
    from sfumato.data import source
    from sfumato.ledger import written
    from sfumato.publishing.publisher import Publisher

    spec = read_plan(plan)
    where = spec.source
    src = source(
        where.path,
        domain_of(spec),
        where.person,
        where.rows_per_person,
        where.neighbours,
        where.name,
        where.version,
    )
    account = spec.budget
    # An account is bound to its person column for good, so a slip in the plan is found before it is opened.
    src.require(spec.plan().needs(src.domain))
    with (
        Publisher(
            src,
            ledger=opened(ledger),
            account=account.account,
            budget=account.total,
            ceiling=account.most,
        ) as publisher,
        scanning() as progress,
    ):
        releases: list[Release] = publisher.release(
            spec.plan(),
            key=spec.release.key,
            fresh=fresh,
            progress=progress,
            epsilon=spec.release.epsilon,
            delta=spec.release.delta,
            rho=spec.release.rho,
        )
        after = publisher.account
    paid = "Nothing was spent: these are the stored answers." if releases[0].replayed else "Paid."
    show_releases(
        releases,
        as_json=as_json,
        out=out,
        charged=f"{paid} Remaining: {written(after.rule, after.remaining)}.",
    )
    if page is not None:
        from sfumato.pages import report

        talk(f"Report: {report(releases, page)}")
