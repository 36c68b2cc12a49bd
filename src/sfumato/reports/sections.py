"""The sections of the page: one for each release, and one for all proofs.

*Tables that add up*, across their axes, with the sums on the edges.

Where whole numbers are there, they are shown, marked as rounded, and the estimates are folded below
them. A count that may be 0 is hatched.

*One release* (``of_answers``): picture, accuracy, table.

Everything is computed from what ``Release`` declares. What a kind of release does not have, such as
a picture, is left out.

*Clusters of reports that persons' own devices made noisy* (``study``).

There is no ledger and no receipt: nobody but each person ever had the true values.

*Proofs, receipts and hashes* (``proofs``): once for all answers that share them, at the end of the
page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from markupsafe import Markup

from sfumato.answers import (
    CountsRelease,
    CrossTable,
    Release,
    accuracy_sentence,
    family_accuracy,
    reading,
    standing,
    without_edges,
)
from sfumato.basics import Array, cell, plain
from sfumato.charts import style, worker
from sfumato.local.clustering import PrivateKMeans
from sfumato.privacy import ZCDP, common_cost, scope
from sfumato.questions.persons import advice
from sfumato.reports.headings import Lines, Study, drawn, heading_of
from sfumato.reports.tables import (
    INTERVALS,
    MOST_ROWS,
    Cell,
    Sheet,
    cut_note,
    marked_cut,
    sheet,
)

# --- tables that add up ---------------------------------------------------------------------------

# A table with more columns is listed, one row for each count.
MOST_COLUMNS = 30

# How many columns fit on a page that stands upright.
UPRIGHT = 12

# Of a table of three axes, how many tables of two of them are open.
OPEN = 6


@dataclass(frozen=True)
class FamilyTable:
    """One table of a family.

    Attributes
    ----------
    title, reading : str
        What it counts, and how to read it.
    sheet : Sheet
        The numbers that are shown.
    estimates : Sheet or None
        The numbers before they were rounded; None: they are what is shown.
    cut : str
        What is left out of it; "" if it is whole.
    folded : bool
    """

    title: str
    reading: str
    sheet: Sheet
    estimates: Sheet | None = None
    cut: str = ""
    folded: bool = False

    @property
    def is_broad(self) -> bool:
        """Whether it is printed on a page that lies on its side."""
        return len(self.sheet.columns) > UPRIGHT


def family_tables(release: Release) -> tuple[FamilyTable, ...]:
    """The tables of a release that is named for people; none unless its counts add up."""
    tables_shown = []
    for axes, tables in release.cross_tables.items():
        if tables and len(tables[0].columns) <= MOST_COLUMNS:
            tables_shown += [
                _crossed(table, folded=len(tables) > OPEN and at > 0)
                for at, table in enumerate(tables)
            ]
        else:
            tables_shown.append(_listed(release, axes))
    if release.guarantee.unit.limits_kept:
        return tuple(map(_marked_cut, tables_shown))
    return tuple(tables_shown)


def _marked_cut(shown: FamilyTable) -> FamilyTable:
    """Return a table of a family whose counts a limit on each person's rows may have cut."""
    if not shown.sheet.crossed:
        return shown  # it is marked, as the table of one answer
    reading = f"{shown.reading} {cut_note('count')}"
    return replace(shown, sheet=marked_cut(shown.sheet), reading=reading)


def _crossed(table: CrossTable, *, folded: bool) -> FamilyTable:
    shown = table.estimates if table.rounded is None else table.rounded
    total = len(table.rows)
    return FamilyTable(
        title=plain(table.title, 200),
        reading=reading(table),
        sheet=_sheet(table, shown),
        estimates=None if table.rounded is None else _sheet(table, table.estimates),
        cut="" if total <= MOST_ROWS else f"The first rows of {total:,}, and the sums.",
        folded=folded,
    )


def _sheet(table: CrossTable, numbers: Array) -> Sheet:
    total = len(table.rows)
    # Of a long table the first rows are shown, and the sums, which are its last row.
    first_rows = range(total - 1)[: MOST_ROWS - 1]
    is_even = table.widths is not None
    low = table.estimates - table.half_widths
    high = table.estimates + table.half_widths
    rows = []
    for at in (*first_rows, total - 1):
        ranges = [
            "" if is_even else f"{_count(least)} to {_count(most)}"
            for least, most in zip(low[at], high[at], strict=True)
        ]
        fields = zip(numbers[at].tolist(), ranges, table.hatched[at].tolist(), strict=True)
        rows.append(
            (Cell(cell(table.rows[at], "label")), *(Cell(_count(n), r, h) for n, r, h in fields))
        )
    corner = f"{table.down} / {table.across}" if table.across else table.down
    return Sheet(
        columns=(corner, *(cell(name, "label") for name in table.columns)),
        text=(True, *(False for _ in table.columns)),
        rows=tuple(rows),
        total=total,
        reading="",
        crossed=True,
        has_margins=table.has_column_sums,
        has_last_sums=table.has_row_sums,
    )


def _count(value: float) -> str:
    """Return a count: whole, or with one decimal."""
    if isinstance(value, int):
        return cell(value)
    return f"{value:,.1f}".replace("-", "−")


def _listed(release: Release, axes: Sequence[str]) -> FamilyTable:
    """Return a table that is too broad to be laid out: one row for each count."""
    laid = sheet(release.members.get(" x ".join(axes), release))
    assert laid is not None
    cut = "" if laid.total <= MOST_ROWS else f"The first {MOST_ROWS} of {laid.total:,} rows."
    title = plain(f"Number of rows by {' and '.join(axes)}", 200)
    return FamilyTable(title, laid.reading, laid, cut=cut)


# --- one release ----------------------------------------------------------------------------------

TAIL = ("count", *INTERVALS)


@dataclass(frozen=True)
class Section:
    """What the template shows of one release."""

    anchor: str
    title: str
    private: bool
    measure: str
    description: str
    facts: tuple[str, ...]
    accuracy: str | None
    table: Sheet | None
    family: tuple[FamilyTable, ...] = ()
    charts: tuple[Markup, ...] = ()

    @property
    def is_map(self) -> bool:
        """Whether the picture is a map that can be enlarged."""
        return any('<g class="map" data-extent="' in chart for chart in self.charts)


def of_answers(releases: Sequence[Release], anchors: Sequence[str]) -> list[Section]:
    """The sections of all releases of a page. Pictures are drawn last, all together."""
    shown = list(map(_undrawn, releases, anchors))
    orders = [
        worker.Order(release, section.title, section.description, section.anchor)
        for release, section in zip(releases, shown, strict=True)
        if release.has_picture
    ]
    charts = {
        order.name: tuple(map(Markup, pictures))
        for order, pictures in zip(orders, worker.drawn_together(orders), strict=True)
    }
    return [replace(section, charts=charts.get(section.anchor, ())) for section in shown]


def _undrawn(release: Release, anchor: str) -> Section:
    """Collect what the page shows of a release, but for its pictures."""
    named = release.for_people()
    sentence = family_accuracy(named) or accuracy_sentence(named)
    accuracy = None if sentence is None else sentence.replace("+-", "±")
    facts = (*filter(None, [named.as_of]), *_facts(named))
    title = heading_of(release)
    family = family_tables(named)
    description = " ".join([*facts, accuracy or ""]).strip()
    return Section(
        anchor=anchor,
        title=title,
        private=release.guarantee.private,
        measure=str(release.guarantee.measure),
        description=description or title,
        facts=facts,
        accuracy=accuracy,
        table=None if family else sheet(named),
        family=family,
    )


def _number(value: float) -> str:
    return style.number(math.ceil(value) if abs(value) >= 100 else value)


def _facts(release: Release) -> tuple[str, ...]:
    """Return what a release says in sentences; else, of counts, the largest and how many are not 0.

    How many are not 0 is said twice: of each judged alone, which the front page says too, and of
    all at once.

    The intervals are those that hold for all counts at once, because the largest count was picked
    after looking at all.
    """
    if release.facts:
        return release.facts
    counts = np.asarray(release.values).reshape(-1)
    if not isinstance(release, CountsRelease) or not release.has_table or not counts.size:
        return ()
    frame = without_edges(release.to_frame())
    if not set(TAIL) <= set(frame.column_names):
        return ()
    low, high = (np.asarray(end).reshape(-1) for end in release.interval("0.95", True))
    told = low > 0
    top, which = _largest(counts, told)
    axes = {name: frame[name][top].as_py() for name in frame.column_names if name not in TAIL}
    alone, _ = release.interval("0.95")
    by_themselves = int((np.asarray(alone) > 0).sum())
    largest = (
        f"Of {release.guarantee.unit.counted}, "
        f"{which} is {style.number(counts[top])} "
        f"(between {_number(low[top])} and {_number(high[top])}) with 95% confidence, "
        f"at {_cell_name(release, axes)}."
    )
    shown = (
        f"{by_themselves:,} of {counts.size:,} counts stand out from the noise, each judged alone; "
        f"judged all at once, {int(told.sum()):,}."
    )
    return (largest, shown) if counts.size > 1 else (largest,)


def _largest(counts: Array, told: Array) -> tuple[int, str]:
    """Return the place of the largest count that is worth naming, and what it is called."""
    top = int(np.argmax(counts))
    if not told.any() or told[top]:
        return top, "the largest noisy count"
    # Where some counts have far more noise than others, the largest may be noise alone.
    shown_counts = np.where(told, counts, -np.inf)
    top = int(np.argmax(shown_counts))
    return top, "the largest noisy count that can be told from 0"


def _cell_name(release: Release, values: dict[str, object]) -> str:
    """Name a cell: labels as they are, and columns NAME_lower and NAME_upper as one range."""
    parts = []
    shown = {name: cell(value, release.kind_of_column(name)) for name, value in values.items()}
    for column, text in shown.items():
        name, _, end = column.rpartition("_")
        if end == "upper" and f"{name}_lower" in values:
            # It was named together with its lower end.
            continue
        if end == "lower" and f"{name}_upper" in values:
            parts.append(f"{name} {text} to {shown[f'{name}_upper']}")
        else:
            parts.append(f"{column} {text}")
    return ", ".join(parts)


# --- clusters of reports --------------------------------------------------------------------------

MOST_CENTRES = 12


def study(model: PrivateKMeans, anchor: str, *, technical: bool = True) -> Study:
    """Collect what the page shows of clusters that were found without a trusted curator.

    A page that is not technical leaves out the proof.

    Raises
    ------
    UsageError
        If the model has seen no reports.
    """
    promises = tuple(str(model.guarantee_).splitlines())
    title = "Clusters without a trusted curator"
    sentences = _sentences(model)
    if not model.guarantee_.private:
        warning = "NOT PRIVATE: the noise came from a public seed, for testing only."
        sentences = [warning, *sentences]
    figures = (
        (f"{len(model.reports_):,}", "reports, one from the device of each person"),
        (f"{model.epsilon}", "epsilon of each report, per unit of distance"),
        (f"{model.n_clusters}", "clusters found in the reports"),
    )
    return Study(
        anchor,
        title,
        charts=drawn(model.plot, title, " ".join(sentences), anchor),
        figures=figures,
        sentences=(
            *((sentence, ()) for sentence in sentences),
            ("The centres, from the largest down:", _centres(model)),
            ("What each report promises:", promises if technical else promises[:1]),
        ),
        notes=(),
    )


def _sentences(model: PrivateKMeans) -> list[str]:
    sentences = [
        "Each person's device adds noise to that person's values before anything leaves it. "
        "Whoever collects the reports sees noise, and finds the clusters below it.",
        "The dots are reports, and the crosses are the centres found in them. "
        "Each axis is drawn from 0 to 1 between its public bounds.",
    ]
    if model.method == "naive":
        sentences.append("These centres are those of the reports, and have no intervals.")
    elif not model.evident_:
        sentences.append(
            "The reports do not show where clusters are: the centres are spread evenly over the "
            "bounds, and the intervals say how far they may be off."
        )
    elif not model.in_model_:
        sentences.append(
            "The points do not form round clusters, as the intervals presume, so the confidence of "
            "the intervals is not proved."
        )
    return sentences


def _centres(model: PrivateKMeans) -> tuple[str, ...]:
    """Each centre as a line, with a 95% interval for each coordinate where there is one."""
    centres = model.cluster_centers_
    n_axes = centres.shape[1]
    names = [f"axis {i}" for i in range(1, n_axes + 1)]
    if isinstance(model.bounds, dict):
        names = [plain(str(name)) for name in model.bounds]
    ends = (centres, centres) if model.method == "naive" else model.intervals()
    order = np.argsort(-model.weights_, kind="stable")
    lines = []
    for i in order[:MOST_CENTRES].tolist():
        places = []
        for name, value, low, high in zip(names, *(at[i] for at in (centres, *ends)), strict=True):
            reach = "" if low == high else f" ({_four_digits(low)} to {_four_digits(high)}, 95%)"
            places.append(f"{name} {_four_digits(value)}{reach}")
        lines.append(f"{100 * model.weights_[i]:.0f}% of the persons: {', '.join(places)}")
    further = len(order) - len(lines)
    return (*lines, f"and {further:,} more") if further > 0 else tuple(lines)


def _four_digits(value: float) -> str:
    return style.number(float(f"{value:.4g}"))


# --- proofs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shared:
    """What several answers have in common.

    Attributes
    ----------
    answers : tuple of (anchor, heading)
    lines : tuple of (name, sentences)
    """

    answers: tuple[tuple[str, str], ...]
    lines: Lines


@dataclass(frozen=True)
class Proofs:
    """The end of the page.

    Attributes
    ----------
    counted : tuple of Shared
        Which rows the numbers are about.
    guarantees, receipts : tuple of Shared
    """

    counted: tuple[Shared, ...]
    guarantees: tuple[Shared, ...]
    receipts: tuple[Shared, ...]


def proofs(releases: Sequence[Release], anchors: Sequence[str]) -> Proofs:
    """What the page says of guarantees and charges, each once.

    Parameters
    ----------
    releases : sequence of Release
    anchors : sequence of str
        Where each of them stands on the page.
    """
    answers = [
        (anchor, heading_of(release)) for anchor, release in zip(anchors, releases, strict=True)
    ]
    return Proofs(
        _by_lines(answers, (_counted(release) for release in releases)),
        _by_lines(answers, _guarantees(releases)),
        _by_lines(answers, (_receipt(release) for release in releases)),
    )


def _by_lines(answers: Sequence[tuple[str, str]], lines: Iterable[Lines]) -> tuple[Shared, ...]:
    """Answers with equal lines together, in the order of the page."""
    answers_by_lines: dict[Lines, list[tuple[str, str]]] = {}
    for answer, said in zip(answers, lines, strict=True):
        answers_by_lines.setdefault(said, []).append(answer)
    return tuple(
        Shared(tuple(together), said) for said, together in answers_by_lines.items() if said
    )


def _counted(release: Release) -> Lines:
    """Return which rows an answer counts; and where it is not known what is cut, whom to ask."""
    guarantee = release.guarantee
    if not guarantee.counted:
        return ()
    is_known = guarantee.scope != scope(guarantee.unit)
    in_rho = isinstance(guarantee.measure, ZCDP)
    said = "" if is_known else advice(guarantee.unit, in_rho=in_rho, axes=release.layout)
    sentences = (f"{said[:1].upper()}{said[1:]}.",) if said else ()
    return (("", (guarantee.counted, *sentences)),)


def _guarantees(releases: Sequence[Release]) -> list[Lines]:
    """Return the guarantee of each; answers whose costs differ in their last digits have one."""
    measures = {release.guarantee.measure: None for release in releases}
    facts = []
    for release in releases:
        guarantee = release.guarantee
        alike = [other for other in measures if common_cost([guarantee.measure, other])]
        common = common_cost(alike)
        if common is None or not common.is_rounded:
            facts.append(_guarantee(str(guarantee)))
            continue
        rounded = str(msgspec.structs.replace(guarantee, measure=common.cost))
        text = rounded.replace(str(common.cost), str(common), 1)
        facts.append(_guarantee(text))
    return facts


def _guarantee(text: str) -> Lines:
    """Return the sentences of ``str(guarantee)``, grouped by their headings.

    Which rows were counted has a place of its own on the page.
    """
    grouped: dict[str, list[str]] = {}
    for line in text.splitlines():
        heading, _, sentence = line.partition(": ")
        if heading == "Counted":
            continue
        grouped.setdefault(heading, []).append(f"{sentence[:1].upper()}{sentence[1:]}")
    return tuple((heading, tuple(sentences)) for heading, sentences in grouped.items())


def _receipt(release: Release) -> Lines:
    receipt = release.receipt
    if receipt is None:
        return (("Receipt", ("None: this answer was not charged to an account.",)),)
    rows = receipt.lines()
    if release.replayed:
        rows.append(("Answer", "The stored one, given before; nothing was spent for it again"))
    if origin := standing(release):
        rows.append(("Origin", origin))
    # Which answer of a plan it is, is said beside its name.
    charged = receipt.charged
    return tuple((name, (charged if name == "Charged" else text,)) for name, text in rows)
