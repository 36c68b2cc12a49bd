"""``sfumato choose``: which epsilon, between what is accurate enough and what is safe enough."""

from __future__ import annotations

import textwrap
from pathlib import Path

import click
import msgspec

from sfumato.choosing import Window, Within, window
from sfumato.choosing import choose as chosen
from sfumato.cli.options import INTEGER, gathers, json_option
from sfumato.cli.output import ROWS_SHOWN, emit_json, say, table, talk
from sfumato.cli.targets import NewFile
from sfumato.domain import Domain, Interval
from sfumato.errors import UsageError
from sfumato.histogram import Histogram
from sfumato.numbers import fraction, positive, probability
from sfumato.privacy import belief
from sfumato.privacy.unit import Neighbours, Unit
from sfumato.publishing.plan import Plan
from sfumato.publishing.plan_file import domain_of, read_plan
from sfumato.risk import Choices, Risk

WIDTH = 80
PRIOR, POSTERIOR = "0.01", "0.05"
HEADS = ("column", "query", "epsilon", "loose bound", "records", "published", "advantage")


class OfFile(msgspec.Struct, frozen=True):
    """What is asked of FILE, by Lee and Clifton's method."""

    file: Path | None
    columns: tuple[str, ...]
    size: int | None
    query: str
    risk: str
    drop_missing: bool


class OfWindow(msgspec.Struct, frozen=True):
    """What is asked of a plan, or of a histogram: how accurate, and how safe, is enough."""

    plan: Path | None
    cells: int
    within: str
    confidence: str
    each: bool
    rows_per_person: int
    neighbours: Neighbours
    advantage: str | None
    prior: str | None
    posterior: str | None
    fpr: str | None
    tpr: str | None
    exceeded: str
    zcdp: bool
    delta: str
    rows: int | None


@click.command(short_help="Choose epsilon.")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="A column of FILE; again for each.  [default: all columns of numbers]",
)
@click.option("--size", type=INTEGER, help="Records in the published set.  [default: all but one]")
@click.option(
    "--query",
    default="mean",
    show_default=True,
    help="mean, median, sum, count, var, std, or percentile:25.",
)
@click.option(
    "--risk",
    default="1/3",
    show_default=True,
    help="Largest belief in one possible data set, for FILE.",
)
@click.option(
    "--drop-missing",
    is_flag=True,
    help="Leave out records without a number; else they are an error.",
)
@click.option(
    "--plan",
    type=click.Path(path_type=Path),
    help="Find the window for the questions of a plan (TOML).",
)
@click.option(
    "--cells",
    type=INTEGER,
    default=50,
    show_default=True,
    help="Else for a histogram of so many cells.",
)
@click.option(
    "--within", default="20", show_default=True, help="Half-width that is accurate enough."
)
@click.option("--confidence", default="0.95", show_default=True)
@click.option(
    "--each/--all-at-once",
    default=False,
    help="Each number by itself, or all together.  [default: all-at-once]",
)
@click.option("--rows-per-person", type=INTEGER, default=1, show_default=True)
@click.option(
    "--neighbours",
    type=click.Choice(["add-remove", "replace"]),
    default="add-remove",
    show_default=True,
)
@click.option("--advantage", help="Largest membership advantage that is safe enough.")
@click.option("--prior", help=f"With --posterior: a belief of so much ...  [default: {PRIOR}]")
@click.option("--posterior", help=f"... may become one of so much.  [default: {POSTERIOR}]")
@click.option("--fpr", help="With --tpr: a test that accuses such a share of the innocent ...")
@click.option("--tpr", help="... may find such a share of the members.")
@click.option(
    "--exceeded",
    default="0",
    show_default=True,
    help="With this chance a belief may grow further; for --zcdp and delta.",
)
@click.option("--zcdp", is_flag=True, help="Count the cost in rho: Gaussian noise.")
@click.option("--delta", default="0", show_default=True, help="Count the cost in (epsilon, delta).")
@click.option("--rows", type=INTEGER, help="Your own public guess of the number of rows.")
@click.option("--report", "page", type=NewFile(), help="Also write one HTML page.")
@json_option
@gathers(OfFile)
@gathers(OfWindow)
def choose(wished: OfWindow, told: OfFile, page: Path | None, as_json: bool) -> None:
    """Find the window between an epsilon that is accurate enough and one that is safe enough. The decision comes first.

    With FILE (Parquet or CSV), whose rows are all records that an adversary knows of, also say by Lee and Clifton's method
    which epsilon keeps them from naming the published data set. FILE is read, and nothing is spent: the epsilons it leads to
    tell something about it, if it is not public.

    Example: sfumato choose people.csv --column wage --cells 50 --within 20
    """
    choices = None if told.file is None else _choices(told.file, told)
    windows = _windows(choices, told.risk, wished)
    if as_json:
        decision = windows[0].explain().splitlines()[0]
        listed = None if choices is None else list(choices.values())
        emit_json(
            {"decision": decision, "windows": [_plain(one) for one in windows], "choices": listed}
        )
    else:
        _say(windows)
        if choices is not None:
            _show(choices)
    if page is not None:
        from sfumato.pages import report

        talk(f"Report: {report([*windows, *([] if choices is None else [choices])], page)}")


def _choices(file: Path, told: OfFile) -> Choices:
    from sfumato.data.number_columns import other_columns

    name, colon, at = told.query.partition(":")
    query = (name, at) if colon else name
    missing = "drop" if told.drop_missing else "refuse"
    found = chosen(file, told.size, query, told.risk, columns=told.columns or None, missing=missing)
    assert isinstance(found, Choices)
    left = [] if told.columns else other_columns(file, found.keys())
    if left:
        talk(
            f"Not numbers, and left out: {textwrap.shorten(', '.join(left), 200, placeholder=' ...')}."
        )
    return found


def _windows(choices: Choices | None, disclosure: str, wished: OfWindow) -> list[Window]:
    """The window for the risk asked for; with a universe, also that for the disclosure risk."""
    question, domain, unit = _asked(wished)
    half_width = float(positive(wished.within, "half_width"))
    confidence = float(probability(wished.confidence, "confidence"))
    accuracy = Within(half_width, confidence, simultaneous=not wished.each)

    def of(risk: Risk, worlds: Choices | None) -> Window:
        return window(
            question,
            domain=domain,
            unit=unit,
            accuracy=accuracy,
            risk=risk,
            worlds=worlds,
            rows=wished.rows,
            measure="zcdp" if wished.zcdp else "pure",
            delta=wished.delta,
        )

    found = [of(_risk(wished), None)]
    if choices is not None:
        exceeded = float(fraction(wished.exceeded, "exceeded"))
        limit = Risk(disclosure=float(probability(disclosure, "disclosure")), exceeded=exceeded)
        found.append(of(limit, choices))
    return found


def _risk(wished: OfWindow) -> Risk:
    """The risk that is safe enough: as it was given, or else a bound on what a belief may become."""
    given = {"advantage": wished.advantage, "fpr": wished.fpr, "tpr": wished.tpr}
    if (
        all(text is None for text in given.values())
        or wished.prior is not None
        or wished.posterior is not None
    ):
        given |= {"prior": wished.prior or PRIOR, "posterior": wished.posterior or POSTERIOR}
    numbers = {
        name: float(probability(text, name)) for name, text in given.items() if text is not None
    }
    return Risk(exceeded=float(fraction(wished.exceeded, "exceeded")), **numbers)


def _asked(wished: OfWindow) -> tuple[Plan, Domain, Unit]:
    if wished.plan is not None:
        spec = read_plan(wished.plan)
        where = spec.source
        return (
            spec.plan(),
            domain_of(spec),
            Unit(where.rows_per_person, where.neighbours, where.person),
        )
    if wished.cells < 2:
        raise UsageError(
            f"--cells {wished.cells}", "a histogram has at least 2 cells", "Write --cells 50"
        )
    axis = f"{wished.cells:,} cells"
    unit = Unit(wished.rows_per_person, wished.neighbours)
    return Plan([Histogram(axis)]), Domain({axis: Interval(0, wished.cells, step=1)}), unit


def _plain(found: Window) -> dict[str, object]:
    ends: dict[str, object] = {
        "floor": found.floor,
        "ceiling": found.ceiling,
        "feasible": found.feasible,
    }
    return ends | {"measure": found.kind.letter, "explained": found.explain(), "window": found}


def _show(choices: Choices) -> None:
    """What the numbers rest on; one line a column; then what must be said beside them, once."""
    parts = choices.values()
    click.echo()
    _wrap(
        "By Lee and Clifton's method, for one query of one column. It rests on the records of the file being all that an adversary "
        "knows of, and says how sure the adversary can become of the published set. It is no epsilon for the questions above."
    )
    large = [part.column or part.query for part in parts if part.epsilon > belief.LARGE]
    if large:
        _wrap(
            f"Do not use an epsilon above {belief.LARGE}: it protects hardly anyone. Here that is {', '.join(large)}."
        )
    rows = [
        (p.column, p.query, p.quoted, p.quoted_loose, p.records, p.size, f"{p.advantage:.3f}")
        for p in parts
    ]
    table(
        HEADS, rows, f"Largest epsilon for one query, for a disclosure risk of {parts[0].risk:.6g}"
    )
    _wrap("Advantage: what a membership test of one person can reach at that epsilon.")
    for part in parts[:ROWS_SHOWN]:
        if part.worst is not None:
            _wrap(f"{part.column}: the worst world is {part.worst}.")
    boldest = max(parts, key=lambda part: part.epsilon)
    _wrap(f"Note: {boldest.caveats[0]} (This is {boldest.column}.)")
    for note in dict.fromkeys(note for part in parts for note in part.caveats[1:]):
        _wrap(f"Note: {note}")


def _say(windows: list[Window]) -> None:
    """The first window whole; of another, which has the same floor, its ceiling and what follows from it."""
    for found in windows:
        lines = found.explain().splitlines()
        if found is not windows[0]:
            click.echo()
            lines = [
                line
                for line in lines
                if line.startswith(("Decision", "Ceiling", "Feasible", "  "))
                and line not in windows[0].explain()
            ]
        for line in lines:
            _wrap(line)


def _wrap(line: str) -> None:
    """Print one sentence or several in lines of 80 characters; what is indented stays so."""
    indent = " " * (len(line) - len(line.lstrip()))
    say(
        textwrap.fill(
            line.strip(),
            WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_on_hyphens=False,
        )
    )
