"""Commands about a plan, several questions in one TOML file: ``preview``, ``release``, ``check``.

``sfumato check`` counts what a release would drop or clamp, for the data custodian's own screen; it
takes a plan or a table.
"""

from __future__ import annotations

import importlib.util
import sys
from fractions import Fraction
from pathlib import Path

import click

from sfumato.answers import Needs
from sfumato.cli.layers import LayeredCommand
from sfumato.cli.options import (
    AXIS_HELP,
    COLUMNS,
    INTEGER,
    OUTPUT,
    PERSON_CALLED_HELP,
    PERSONS,
    PERSONS_HELP,
    WHERE_HELP,
    EngineSettings,
    charged_option,
    engine_options,
    files_options,
    gathers,
    json_option,
    limit_options,
    opened_to_charge,
    option,
    paid_options,
    report_option,
    written_options,
)
from sfumato.cli.output import (
    emit_json,
    print_messages,
    prose,
    scanning,
    show_releases,
    writes_file,
)
from sfumato.cli.paths import SourceFile, files_read, require_unread
from sfumato.cli.publishing import (
    AnswerFiles,
    Forms,
    TableSettings,
    after_payment,
    day_of,
    page_of,
    remaining_of,
)
from sfumato.data.addresses import server_of
from sfumato.data.reader import Reader
from sfumato.data.source import Source
from sfumato.errors import DataError, UsageError
from sfumato.privacy import (
    ApproxDP,
    CentralMeasure,
    PureDP,
    belief,
    compose,
    plan_epsilon,
    rule_of,
)
from sfumato.publishing.plan import check_rows
from sfumato.publishing.plan_file import PlanFile, domain_of, read_plan
from sfumato.publishing.previews import checked, needs_to_check, previews
from sfumato.publishing.publisher import CommandPublisher
from sfumato.questions.histogram import Histogram

# The delta at which the cost of a whole plan is also shown, where it is tighter that way.
DELTA = Fraction(1, 10**6)

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
    spec = read_plan(plan)
    check_rows(rows)
    domain = domain_of(spec)
    unit = spec.source.unit(domain)
    planned = spec.plan()
    total = spec.budget.total
    rule = None if total is None else rule_of(total)
    stated = spec.release.stated(planned)
    answers = previews(planned, domain, unit, stated, rows=rows, rule=rule)
    if as_json:
        picked: dict[str, object] = {}
        if (choice := answers.choice) is not None:
            of_plan = {"cost": choice.cost, "in_rho": choice.in_rho, "sentences": choice.sentences}
            picked = {"picked": of_plan}
        emit_json(
            [
                {"preview": answer, "accuracy": answer.accuracy(), "counted": answer.counted}
                | picked
                for answer in answers
            ]
        )
        return
    for text in answers.answers():
        prose(text)
    if answers.choice is not None:
        prose(f"Picked: {answers.choice}")
        whole = answers.choice.cost
        said = f"at most {whole}"
    elif len(answers) > 1:
        costs = [answer.cost for answer in answers]
        whole = compose(costs)
        said = _together(costs, whole)
    else:
        return
    # What that allows an adversary to learn.
    risk = belief.warning(whole, unit) or belief.sentence(whole, unit)
    prose(f"Together: {said}.\n  {risk}")


def _together(costs: list[CentralMeasure], whole: CentralMeasure) -> str:
    """What a whole plan costs by addition, or, where that is less, as one fixed plan."""
    text = f"{whole} by addition"
    pure = [cost for cost in costs if isinstance(cost, PureDP)]
    # Tighter composition needs dp-accounting, which the extra `risk` installs.
    if len(pure) == len(costs) and importlib.util.find_spec("dp_accounting") is not None:
        fixed = plan_epsilon(pure, DELTA)
        if fixed <= WORTH_SAYING * sum(cost.epsilon for cost in pure):
            text += f"; as one fixed plan, it is also {ApproxDP(fixed, DELTA)}"
    return text


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
    questions = spec.plan().settled(domain_of(spec)).questions
    files.require(questions, spec.source.path)
    require_unread("--report", page, [plan, *files_read(spec.source.path)])
    with engine.opened(spec.source.path) as table:
        publisher = CommandPublisher(
            source_of(spec, table),
            ledger=opened_to_charge(ledger),
            account=spec.budget.account,
            budget=spec.budget.total,
            ceiling=spec.budget.most,
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
            remaining = remaining_of(publisher)
    with after_payment():
        said = files.write(releases, Forms()) + page_of(releases, page)
    spent = "Paid."
    if releases[0].replayed:
        spent = f"Nothing was spent: these are the stored answers{day_of(releases[0])}."
    show_releases(releases, as_json=as_json, charged=f"{spent} {remaining}.")
    print_messages(*said)


def source_of(spec: PlanFile, table: Reader | None = None) -> Source:
    """Open the source of a plan, and say before which server is asked: a stranger may name it."""
    server = server_of(spec.source.path) if table is None else None
    if server is not None:
        print_messages(f"The plan reads its table from the PostgreSQL server {server}.")
    return spec.source.opened(domain_of(spec), table)


# --- sfumato check --------------------------------------------------------------------------------


@click.command(cls=LayeredCommand, short_help="Count rows that a release would drop or clamp.")
@click.argument("file", metavar="PLAN|FILE", type=SourceFile())
@option("--axis", "axes", group=COLUMNS, common=True, multiple=True, help=AXIS_HELP)
@option("--where", group=COLUMNS, multiple=True, help=WHERE_HELP)
@option("--person", group=PERSONS, common=True, multiple=True, help=PERSONS_HELP)
@option("--person-called", group=PERSONS, help=PERSON_CALLED_HELP)
@limit_options
@written_options
@option(
    "--all-labels",
    is_flag=True,
    help="Show all labels that are not listed, on the screen: not with --json.",
    group=OUTPUT,
    common=True,
)
@json_option
@gathers(TableSettings)
def check(table: TableSettings, all_labels: bool, as_json: bool) -> int:
    """Count the rows of a table that a release would drop or clamp.

    Use it before you pay, to find unlisted labels, values out of bounds, missing values and
    persons with more rows than the limit. PLAN is a TOML file, and each of its questions is
    checked; a FILE (Parquet, CSV or Excel) is checked for the axes given.

    Nothing is charged. The output states facts of your data, without protection: it is NOT FOR
    PUBLICATION, and bounds chosen from it are no longer public.

    Exit code 4 means that a release would be refused: the output says why.

    \b
    Examples:
      sfumato check examples/flights.toml
      sfumato check people.csv --axis age=0..121/1 --axis kind=a,b --person id
    """
    from sfumato.questions.persons import advice

    # All labels are the data's own values: programs do not get them, nor does a file.
    if all_labels and as_json:
        raise UsageError(
            "--all-labels with --json",
            "all labels are for the screen alone, and programs read JSON",
            "Leave one of them out",
        )
    if all_labels and writes_file(sys.stdout):
        raise UsageError(
            "--all-labels",
            "all labels are for the screen alone, and stdout is a file",
            "Leave out > FILE; to turn pages, add | less",
        )
    rows, needs = _of_file(table)
    with scanning() as progress:
        losses = checked(rows, needs, progress, all_labels=all_labels)
    if as_json:
        click.echo(losses.to_json())
    else:
        click.echo(str(losses))
        of_rows = (need.lattice.names for _, need in needs or [] if need.counted == "rows")
        axes = next(of_rows, ())
        # Which question tells what the limits leave out, so that it can be published.
        if said := advice(rows.unit, in_rho=False, axes=axes):
            how = said.removeprefix("to learn how much that leaves out, ")
            prose(f"\nTo publish how much a limit leaves out, {how}.")
    return 0 if losses.refused is None else DataError.exit_code


def _of_file(table: TableSettings) -> tuple[Source, list[tuple[str, Needs]] | None]:
    """The source of a plan or of a file, and the title and needs of each question about it.

    None: what holds of the axes alone.
    """
    assert table.file is not None  # click requires it
    if table.file.suffix.lower() == ".toml":
        if table != TableSettings(table.file):
            raise UsageError(
                "options of a file with a plan", "the plan says so itself", "Leave them out"
            )
        spec = read_plan(table.file)
        rows = source_of(spec)
        plan = spec.plan().settled(rows.domain)
        plan.require_unit(rows.unit)
        return rows, needs_to_check(plan, rows.domain, rows.unit)
    if not table.axes:
        raise UsageError(
            f"a check of {table.file}",
            "it names no axis",
            "Write --axis age=0..100 or --axis kind=a,b",
        )
    rows = table.source(table.domain())
    # Limits by cell hold in the cells of the table of all axes.
    cells = Histogram(tuple(rows.domain))
    return rows, [(cells.title, cells.needs(rows.domain))] if rows.unit.by_cell else None
