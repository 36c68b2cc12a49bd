"""``sfumato choose``: find which epsilon is both accurate enough and safe enough."""

from __future__ import annotations

import textwrap
from operator import attrgetter
from pathlib import Path

import click
import msgspec

from sfumato.answers import Within
from sfumato.basics import decimal, fraction, positive, probability
from sfumato.cli.layers import LayeredCommand
from sfumato.cli.options import (
    COST,
    FLOAT,
    INTEGER,
    NEIGHBOURS_HELP,
    QUESTION,
    Several,
    gathers,
    json_option,
    neighbours_option,
    option,
    report_option,
    rows_per_person_option,
    written_options,
)
from sfumato.cli.output import ROWS_SHOWN, emit_json, print_messages, prose, table
from sfumato.cli.paths import files_read, require_unread
from sfumato.cli.publishing import page_of
from sfumato.data.describe import other_columns
from sfumato.data.options import NOTHING_STATED, StatedOptions, file_options
from sfumato.domain import Domain, Interval
from sfumato.errors import UsageError
from sfumato.privacy import Neighbours, Unit, belief
from sfumato.publishing.plan import Plan
from sfumato.publishing.plan_file import domain_of, read_plan
from sfumato.questions.histogram import Histogram
from sfumato.risk import Choices, Risk
from sfumato.risk.choosing import choose as chosen
from sfumato.risk.window import Window, window

PRIOR = "0.01"
POSTERIOR = "0.05"


class WindowSettings(msgspec.Struct, frozen=True):
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


# Groups of options.
RECORDS = "Records of FILE"
ACCURATE = "Accurate enough"
SAFE = "Safe enough"


@click.command(cls=LayeredCommand, short_help="Choose epsilon.")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@option(
    "--column",
    "columns",
    group=RECORDS,
    common=True,
    multiple=True,
    help="Column of FILE; repeat for several.  [default: all of numbers]",
)
@option(
    "--size",
    group=RECORDS,
    type=INTEGER,
    help="With FILE: number of its records in the published set.  [default: all but one]",
)
@option(
    "--query",
    group=RECORDS,
    default="mean",
    show_default=True,
    help="With FILE: mean, median, sum, count, var, std, or a percentile such as percentile:25.",
)
@option(
    "--risk",
    group=RECORDS,
    common=True,
    default="1/3",
    show_default=True,
    help="With FILE: largest probability that the adversary may give to one possible data set.",
)
@option(
    "--drop-missing",
    group=RECORDS,
    is_flag=True,
    help="With FILE: leave out records without a number, which are an error otherwise.",
)
@option(
    "--beliefs",
    group=RECORDS,
    type=Several(FLOAT),
    help="With FILE: how probable the adversary holds each possible published set beforehand, such "
    "as 0.4,0.3,0.3; in the order of itertools.combinations, so the first lacks the last record."
    "  [default: all alike]",
)
@option(
    "--curve",
    group=RECORDS,
    type=Several(click.STRING),
    help="With FILE and --report: epsilons of the picture: the largest, such as 5, or all of them, "
    "separated by commas.  [default: up to four times the epsilon found]",
)
@written_options
@option(
    "--plan",
    group=QUESTION,
    common=True,
    type=click.Path(path_type=Path),
    help="Find the window for the questions of this plan.",
)
@option(
    "--cells",
    group=QUESTION,
    common=True,
    type=INTEGER,
    default=50,
    show_default=True,
    help="Without --plan: find the window for a histogram of this many cells.",
)
@option(
    "--within",
    group=ACCURATE,
    common=True,
    default="20",
    show_default=True,
    help="Accurate enough: the largest acceptable error, in rows. It is half the width of the "
    "interval.",
)
@option(
    "--confidence",
    group=ACCURATE,
    common=True,
    default="0.95",
    show_default=True,
    help="Probability with which the error stays --within.",
)
@option(
    "--each/--all-at-once",
    group=ACCURATE,
    default=False,
    help="Whether --confidence holds for each number separately or for all together."
    "  [default: all-at-once]",
)
@rows_per_person_option("Without --plan: contribution bound, in rows.")
@neighbours_option(f"Without --plan. {NEIGHBOURS_HELP}")
@option(
    "--advantage",
    group=SAFE,
    common=True,
    help="Safe enough: largest advantage, from 0 to 1, of a membership test over guessing.",
)
@option(
    "--prior",
    group=SAFE,
    common=True,
    help="Safe enough, with --posterior: someone who is this sure that a person is in the data ..."
    f"  [default: {PRIOR}]",
)
@option(
    "--posterior",
    group=SAFE,
    common=True,
    help=f"... may become at most this sure.  [default: {POSTERIOR}]",
)
@option(
    "--fpr",
    group=SAFE,
    help="Safe enough, with --tpr: a membership test that accuses this share of non-members ...",
)
@option("--tpr", group=SAFE, help="... may find at most this share of the members.")
@option(
    "--exceeded",
    group=SAFE,
    default="0",
    show_default=True,
    help="Probability with which a belief may grow beyond the risk; for --zcdp and --delta.",
)
@option(
    "--zcdp",
    group=COST,
    is_flag=True,
    help="Count the cost in rho (zero-concentrated differential privacy, Gaussian noise).",
)
@option(
    "--delta",
    group=COST,
    default="0",
    show_default=True,
    help="Count the cost in (epsilon, delta), with this delta.",
)
@option(
    "--rows",
    group=QUESTION,
    type=INTEGER,
    help="Your own public guess of the number of rows, where an accuracy depends on it.",
)
@report_option
@json_option
@gathers(WindowSettings)
@gathers(StatedOptions)
def choose(
    stated: StatedOptions,
    settings: WindowSettings,
    file: Path | None,
    columns: tuple[str, ...],
    size: int | None,
    query: str,
    risk: str,
    drop_missing: bool,
    beliefs: tuple[float, ...] | None,
    curve: tuple[str, ...] | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Find which epsilon is both accurate enough and safe enough.

    The answer is a window: from the smallest epsilon that is accurate enough to the largest that
    is safe enough. The decision stands in the first line. Nothing is spent.

    \b
    Examples:
      sfumato choose --cells 50 --within 20 --advantage 0.3
      sfumato choose people.csv --column wage --cells 50 --within 20
    \f
    With FILE (Parquet, CSV or Excel), whose rows are all records that an adversary knows of, the
    output adds the epsilon of Lee and Clifton, which keeps the adversary from naming the published
    data set. FILE is read for this, so that the output reveals something about it.
    """
    require_unread("--report", page, filter(None, [settings.plan]))
    of_file = {
        "--column": columns,
        "--size": size,
        "--drop-missing": drop_missing,
        "--beliefs": beliefs,
        "--curve": curve,
        "options of files": stated != NOTHING_STATED,
    }
    for name, given in of_file.items():
        if file is None and given not in (None, (), False):
            raise UsageError(name, "there is no FILE to read", "Give a FILE, or leave it out")
    choices = None
    if file is not None:
        require_unread("--report", page, files_read(file))
        choices = _choices(
            file,
            stated,
            columns,
            size=size,
            query=query,
            risk=risk,
            drop_missing=drop_missing,
            beliefs=beliefs,
            curve=curve,
        )
    windows = _windows(choices, risk, settings)
    said = page_of([*windows, *filter(None, [choices])], page)
    if as_json:
        decision = windows[0].explain().splitlines()[0]
        listed = None if choices is None else list(choices.values())
        plain = [
            {
                "floor": window.floor,
                "ceiling": window.ceiling,
                "feasible": window.feasible,
                "measure": window.kind.letter,
                "explained": window.explain(),
                "window": window,
            }
            for window in windows
        ]
        emit_json({"decision": decision, "windows": plain, "choices": listed})
    else:
        _say(windows)
        if choices is not None:
            _show(choices)
    print_messages(*said)


def _choices(
    file: Path,
    stated: StatedOptions,
    columns: tuple[str, ...],
    *,
    size: int | None,
    query: str,
    risk: str,
    drop_missing: bool,
    beliefs: tuple[float, ...] | None,
    curve: tuple[str, ...] | None,
) -> Choices:
    name, colon, percentile = query.partition(":")
    choices = chosen(
        file,
        size,
        (name, percentile) if colon else name,
        risk,
        columns=columns or None,
        prior=beliefs,
        missing="drop" if drop_missing else "refuse",
        epsilons=curve[0] if curve is not None and len(curve) == 1 else curve,
        **msgspec.structs.asdict(stated),
    )
    assert isinstance(choices, Choices)
    left_out = [] if columns else other_columns(file, choices.keys(), file_options(stated))
    if left_out:
        names = textwrap.shorten(", ".join(left_out), 200, placeholder=" ...")
        print_messages(f"Left out, because they hold no numbers: {names}.")
    return choices


def _windows(choices: Choices | None, disclosure: str, settings: WindowSettings) -> list[Window]:
    """The window for the risk asked for; with a universe, also that for the disclosure risk."""
    question, domain, unit = _asked(settings)
    half_width = float(positive(settings.within, "--within"))
    confidence = float(probability(settings.confidence, "--confidence"))
    accuracy = Within(half_width, confidence, simultaneous=not settings.each)

    def window_for(risk: Risk, worlds: Choices | None) -> Window:
        return window(
            question,
            domain=domain,
            unit=unit,
            accuracy=accuracy,
            risk=risk,
            worlds=worlds,
            rows=settings.rows,
            measure="zcdp" if settings.zcdp else "pure",
            delta=settings.delta,
        )

    # Safe enough is the risk that is given, or else a bound on what a belief may become.
    given = {"advantage": settings.advantage, "fpr": settings.fpr, "tpr": settings.tpr}
    named = any(text is not None for text in given.values())
    if not named or settings.prior is not None or settings.posterior is not None:
        given["prior"] = settings.prior or PRIOR
        given["posterior"] = settings.posterior or POSTERIOR
    numbers = {
        name: float(probability(text, f"--{name}"))
        for name, text in given.items()
        if text is not None
    }
    exceeded = float(fraction(settings.exceeded, "--exceeded"))
    windows = [window_for(Risk(exceeded=exceeded, **numbers), None)]
    if choices is not None:
        limit = Risk(disclosure=float(probability(disclosure, "--risk")), exceeded=exceeded)
        windows.append(window_for(limit, choices))
    return windows


def _asked(settings: WindowSettings) -> tuple[Plan, Domain, Unit]:
    """The questions, and their domain and unit: of the plan, or of a histogram of --cells."""
    if settings.plan is not None:
        spec = read_plan(settings.plan)
        domain = domain_of(spec)
        return spec.plan(), domain, spec.source.unit(domain)
    if settings.cells < 2:
        raise UsageError(
            f"--cells {settings.cells}", "a histogram has at least 2 cells", "Write --cells 50"
        )
    axis = f"{settings.cells:,} cells"
    domain = Domain({axis: Interval(0, settings.cells, step=1)})
    return Plan([Histogram(axis)]), domain, Unit(settings.rows_per_person, settings.neighbours)


def _show(choices: Choices) -> None:
    """Print what the method rests on, a table with a line per column, and its caveats once."""
    parts = choices.values()
    click.echo()
    _wrap(
        "By Lee and Clifton's method, for one query of one column. It assumes that the records of "
        "the file are all that an adversary knows of, and bounds how sure the adversary can become "
        "of the published set. It is no epsilon for the questions above."
    )
    large = [part.column or part.query for part in parts if part.epsilon > belief.LARGE]
    if large:
        _wrap(
            f"Do not use an epsilon above {belief.LARGE}: it protects hardly anyone. "
            f"Here that is {', '.join(large)}."
        )
    shown = attrgetter("column", "query", "quoted", "quoted_loose", "records", "size")
    table(
        ("column", "query", "epsilon", "loose bound", "records", "published", "advantage"),
        [[*shown(part), f"{part.advantage:.3f}"] for part in parts],
        f"Largest epsilon for one query, for a disclosure risk of {parts[0].risk:.6g}",
    )
    _wrap("Advantage: what a membership test of one person can reach at that epsilon.")
    for part in parts[:ROWS_SHOWN]:
        if part.worst is not None:
            _wrap(f"{part.column}: the worst world is {part.worst}.")
    # The first caveat is about the numbers of one column: that of the largest epsilon stands for
    # all. The others are the same for every column.
    boldest = max(parts, key=lambda part: part.epsilon)
    _wrap(f"Note: {boldest.caveats[0]} (This is {boldest.column}.)")
    for note in dict.fromkeys(note for part in parts for note in part.caveats[1:]):
        _wrap(f"Note: {note}")


def _say(windows: list[Window]) -> None:
    """Print the first window whole; of a second one, only what differs from the first.

    Both have the same floor, since the accuracy asked for is the same.
    """
    first = windows[0].explain()
    for line in first.splitlines():
        _wrap(line)
    if windows[0].feasible:
        kind = windows[0].kind
        cost = "rho" if kind.name == "zcdp" else "epsilon"
        delta = f" --delta {decimal(kind.delta)}" if kind.delta else ""
        command = f"sfumato account --{cost} {windows[0].floor}{delta}"
        _wrap(f"How many an account can pay: {command}")
    for further in windows[1:]:
        click.echo()
        for line in further.explain().splitlines():
            if line.startswith(("Decision", "Ceiling", "Feasible", "  ")) and line not in first:
                _wrap(line)


def _wrap(sentences: str) -> None:
    """Print sentences; nothing stands below them that a wide indent would set apart."""
    prose(sentences, hanging=2)
