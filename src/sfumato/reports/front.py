"""The front page: what was published, how accurate it is, what one person risks.

Each of the three has a few short lines and one picture, and all of them fit one screen. Pictures
are bars, because a reader compares answers and accounts.

``accounts`` adds up what each account was charged, from the receipts of the releases. ``glances``
are small pictures, one trend over time and one map, with their numbers in words. The largest number
was picked after looking at all of them, so it has the interval that holds for all at once. The
latest one has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from markupsafe import Markup

from sfumato.answers import CountsRelease, Receipt, Release, reach_text, said_once
from sfumato.basics import number, plain, rounded, several
from sfumato.charts import scales, style
from sfumato.domain import Lattice, LatticeAxis
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    CentralMeasure,
    Measure,
    PureDP,
    Unit,
    belief,
    compose,
    scope,
)
from sfumato.questions.aggregates import AggregateRelease
from sfumato.questions.histogram import HistogramRelease
from sfumato.questions.partition.release import Partition
from sfumato.reports.headings import heading_of

# --- charges --------------------------------------------------------------------------------------

Paid: TypeAlias = tuple[Release, Receipt]
Place: TypeAlias = tuple[int, str]


@dataclass(frozen=True)
class Charge:
    """One entry of the ledger, and the answers on this page that it paid for."""

    entry: int
    time: str
    charged: str
    source: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Account:
    """One account, with those of its charges that the page shows.

    Attributes
    ----------
    name : str
    protects : str
        Whom its answers protect, as a sentence.
    charges : tuple of Charge
    together : str or None
        The cost of its answers together; None if their costs do not add up.
    by_curves : bool
        Whether that is the total of an account by curves, which holds for all its answers.
    risk : float or None
        How sure somebody who was 1% sure of a person can become by them; None without such a cost.
    meaning : str
        The same as a sentence; otherwise empty.
    warning : str
        What that cost allows, if it protects hardly anyone; otherwise empty.
    most : str
        What it may ever spend, and what that risks; empty where no receipt says it.
    """

    name: str
    protects: str
    charges: tuple[Charge, ...]
    together: str | None
    by_curves: bool
    risk: float | None
    meaning: str
    warning: str
    most: str


def accounts(releases: Sequence[Release]) -> list[Account]:
    """Releases by account and charge. A charge that paid for several answers is shown once."""
    by_account: dict[str, list[Paid]] = {}
    for release in releases:
        if release.receipt is not None:
            by_account.setdefault(release.receipt.account, []).append((release, release.receipt))
    return [_account(name, paid) for name, paid in by_account.items()]


def _account(name: str, paid: list[Paid]) -> Account:
    charges: dict[Place, list[Paid]] = {}
    for release, receipt in paid:
        charges.setdefault(_place(receipt), []).append((release, receipt))
    releases = [release for release, _ in paid]
    units = [release.guarantee.unit for release in releases]
    # By curves, the account's total holds for all its answers, and their costs say less.
    totals = [receipt.total for _, receipt in paid if receipt.total is not None]
    whole = totals[-1] if totals else _together(releases)
    account = Account(
        name,
        _protects(units),
        tuple(_charge(charges[place]) for place in sorted(charges)),
        together=None,
        by_curves=bool(totals),
        risk=None,
        meaning="",
        warning="",
        most=_most([receipt for _, receipt in paid]),
    )
    # Costs that do not add up, such as those of different persons, are not stated together.
    if whole is None:
        return account
    clause = belief.sentence(whole, units[0])
    sentence = f"{clause[:1].upper()}{clause[1:]}."
    return replace(
        account,
        together=str(whole),
        risk=belief.afterwards(whole),
        meaning=sentence.replace("Anyone", "Whoever is", 1),
        warning=belief.warning(whole, units[0]),
    )


def _most(receipts: Sequence[Receipt]) -> str:
    """What an account may ever spend, and what that risks; "" where the receipts do not say it."""
    most = next((receipt for receipt in receipts if receipt.most is not None), None)
    if most is None or most.most is None:
        return ""
    risk = belief.afterwards(most.most)
    then = "" if risk is None else f": then whoever is 1% sure is at most {_chances(risk)} sure"
    return f"{most.budget} is the most that it may ever spend{then}"


def _entity(unit: Unit) -> tuple[object, ...]:
    """Whom a unit protects, and how: equal for two units whose costs add up.

    A person identified by a column is the same under every limit of rows. Without a column the
    limit itself says what is protected.
    """
    return unit.person, unit.neighbours, unit.rows_per_person if unit.person is None else None


def _protects(units: list[Unit]) -> str:
    if len({_entity(unit) for unit in units}) > 1:
        return "Its answers protect different things, and their costs do not add up."
    unit = units[0]
    what = "replaced by another" if unit.neighbours == "replace" else "added or removed"
    if unit.person is not None:
        return f"It protects any one {unit.called}, {what}, with all their rows."
    if unit.rows_per_person > 1:
        return f"It protects any {unit.rows_per_person:,} rows, {what}. {scope(unit)}"
    return f"It protects any single row, {what}. {scope(unit)}"


def _place(receipt: Receipt) -> Place:
    """Which entry paid: two ledgers may have accounts of one name and entries of one number."""
    return receipt.entry, receipt.entry_hash


def _charge(paid: list[Paid]) -> Charge:
    _, receipt = paid[0]
    # An answer may be given twice, and is listed once.
    answers = dict.fromkeys(
        heading_of(release)
        if receipt.part == "1 of 1"
        else f"{heading_of(release)} ({receipt.part})"
        for release, receipt in paid
    )
    return Charge(receipt.entry, receipt.moment, receipt.charged, receipt.source, tuple(answers))


def _measures(releases: list[Release]) -> list[Measure]:
    """What each answer costs; answers of a plan that share a rho cost what was charged for it."""
    measures: list[Measure] = []
    converted: dict[Place, CentralMeasure] = {}
    for release in releases:
        receipt = release.receipt
        whole = None if receipt is None else receipt.cost
        in_rho = isinstance(release.guarantee.measure, ZCDP)
        if receipt is not None and in_rho and isinstance(whole, ApproxDP):
            converted[_place(receipt)] = whole
    for release in releases:
        receipt = release.receipt
        if receipt is None or _place(receipt) not in converted:
            measures.append(release.guarantee.measure)
    return [*measures, *converted.values()]


def _together(releases: list[Release]) -> CentralMeasure | None:
    """Return the cost of all answers together.

    None if their measures or units differ, so that costs do not add up, or if one is not private.
    """
    # A release given twice was paid for once.
    by_charge = {
        (_place(release.receipt), release.receipt.part): release
        for release in releases
        if release.receipt is not None
    }
    measures = _measures(list(by_charge.values()))
    central = [measure for measure in measures if isinstance(measure, PureDP | ApproxDP | ZCDP)]
    kinds = {isinstance(measure, ZCDP) for measure in measures}
    entities = {_entity(release.guarantee.unit) for release in by_charge.values()}
    is_private = all(release.guarantee.private for release in by_charge.values())
    if len(central) < len(measures) or len(kinds) != 1 or len(entities) != 1 or not is_private:
        return None
    return compose(central)


# --- the page -------------------------------------------------------------------------------------

MOST_BARS = 4
MOST_ON_PHONE = 3  # as in the style sheet
LONGEST_SOURCE = 40
MAP_AXES = 2
# Characters of a name beside a bar.
SHOWN = 48
# Sentences on which rows are counted, where answers differ in it.
MOST_SCOPES = 2


@dataclass(frozen=True)
class Bar:
    """One line of a picture.

    Attributes
    ----------
    label : str
    share : float or None
        Length of the bar from 0 to 1; None: there is nothing to draw.
    text : str
        What the bar says in words.
    """

    label: str
    share: float | None
    text: str

    @property
    def percent(self) -> str:
        """The length as CSS and SVG take it; a share that is not 0 can be seen."""
        return f"{100 * max(self.share or 0.0, 0.004 if self.share else 0.0):.2f}%"


@dataclass(frozen=True)
class Block:
    """One of the three questions of the front page.

    Attributes
    ----------
    name, title : str
    lines : tuple of str
    caption : str
        What the bars show.
    bars : tuple of Bar
    further : int
        How many bars are left out.
    hatches : bool
        Whether the rest of a bar is hatched: what is not known.
    notes : tuple of str
        What stands in small letters below.
    """

    name: str
    title: str
    lines: tuple[str, ...]
    caption: str
    bars: tuple[Bar, ...]
    further: int
    hatches: bool = False
    notes: tuple[str, ...] = ()

    @property
    def further_narrow(self) -> int:
        """How many a phone leaves out."""
        return self.further + max(0, len(self.bars) - MOST_ON_PHONE)


def blocks(releases: Sequence[Release], accounts: Sequence[Account]) -> tuple[Block, ...]:
    """The front page of these releases; empty if there are none."""
    if not releases:
        return ()
    return _published(releases), _accurate(releases), _at_risk(releases, accounts)


# --- what was published ---------------------------------------------------------------------------


def _published(releases: Sequence[Release]) -> Block:
    named = _with_tables(releases)
    # Families make the tables more than the answers.
    tables = f" in {several(len(named), 'table')}" if len(named) > len(releases) else ""
    # The data, as the receipts name them.
    data = dict.fromkeys(
        str(release.receipt.data(release.guarantee.unit.conditions))
        for release in releases
        if release.receipt is not None
    )
    about = " and ".join(plain(name, LONGEST_SOURCE) for name in [*data][:2])
    further = f" and {len(data) - 2:,} more tables" if len(data) > 2 else ""
    answers = f"{several(len(releases), 'answer')}{tables}"
    lines = [f"{answers} about {about}{further}." if data else f"{answers}."]
    boxes = [_boxes(release) for release in releases if isinstance(release, Partition)]
    lines += [*_known_numbers(releases), *boxes][:4]
    lines += [*_scopes(releases), *_agreement(releases)]
    caption = "Numbers that stand out from the noise, each judged alone; hatched: the others"
    return _block(
        "published", "What was published", lines, caption, _clear_bars(named), hatches=True
    )


def _clear_bars(named: Iterable[tuple[str, Release]]) -> list[Bar]:
    """Return for each table how many of its numbers stand out; boxes of maps are no such."""
    bars = []
    for label, release in named:
        seen, size = _clear(release) or (0, 0)
        if size and not isinstance(release, Partition):
            known = f"{seen:,} of {size:,}"
            bars.append(Bar(label, seen / size, known))
    return bars


def _known_numbers(releases: Sequence[Release]) -> list[str]:
    """Return how many numbers stand out; boxes of maps are not read one by one, and are no such."""
    numbered = [release for release in releases if not isinstance(release, Partition)]
    judged = [shares for shares in map(_clear, numbered) if shares is not None]
    seen = sum(known for known, _ in judged)
    total = sum(size for _, size in judged)
    if not total:
        return []
    if seen == total:
        return [f"All {several(total, 'number')} stand out from the noise."]
    return [
        f"{seen:,} of {several(total, 'number')} stand out from the noise; for the others it is "
        "too large."
    ]


def _boxes(release: Partition) -> str:
    boxes = several(np.size(release.values), "box")
    if len(release.axes) == MAP_AXES:
        return f"The map has {boxes}; where noise wins, neighbours are drawn together."
    return f"The partition of {plain(' and '.join(release.axes), LONGEST_SOURCE)} has {boxes}."


def _scopes(releases: Sequence[Release]) -> list[str]:
    """Return what is counted and what may be missing, where persons' rows are limited.

    Where one row is one person, this is a matter of what one person risks, and is said there.
    """
    scopes = [release.scope for release in releases]
    if not any(release.guarantee.unit.limits_kept for release in releases):
        return []
    said = said_once(scopes) if len(set(scopes)) > 1 else scopes[:1]
    if len(said) <= MOST_SCOPES:
        return said
    further = len(said) - MOST_SCOPES
    return [
        *said[:MOST_SCOPES],
        f"More on this, for {several(further, 'further answer')}: Which rows were counted.",
    ]


def _agreement(releases: Sequence[Release]) -> list[str]:
    families = [release for release in releases if len(release.members) > 1]
    if not families:
        return []
    tables = sum(len(release.members) for release in families)
    if len(families) > 1:
        return [f"{tables:,} tables are in {len(families):,} families, each of which adds up."]
    return [f"{tables:,} tables add up: any two agree in all totals that they share."]


def _with_tables(releases: Sequence[Release]) -> list[tuple[str, Release]]:
    """Return what a bar may stand for: answers, and each table of a family, with their names."""
    answers = [release.members or {heading_of(release): release} for release in releases]
    return [(plain(name, SHOWN), shown) for tables in answers for name, shown in tables.items()]


def _clear(release: Release) -> tuple[int, int] | None:
    """How many numbers stand out from the noise, and of how many; None where nothing is said."""
    size = int(np.size(release.values))
    if release.has_table and "known" in (frame := release.to_frame()).column_names:
        known = frame["known"].to_pylist()
        return sum(known), len(known)
    if (isinstance(release, CountsRelease) or release.noun == "count") and release.states_accuracy:
        low, _ = release.interval("0.95")
        return int((np.asarray(low) > 0).sum()), size
    return None


# --- how accurate it is ---------------------------------------------------------------------------


def _accurate(releases: Sequence[Release]) -> Block:
    bars = [bar for answer in _with_tables(releases) if (bar := _reach(*answer)) is not None]
    lines = ["Noise was added on purpose: it hides each person."]
    if bars:
        lines.append(
            "The ± is how far noise may move a number, with 95% confidence. "
            "It does not cover rows that were not counted."
        )
    else:
        lines.append("No answer states how accurate it is.")
    caption = "Typical ± as a share of the largest number of the answer"
    return _block("accurate", "How accurate it is", lines, caption, bars)


def _reach(label: str, release: Release) -> Bar | None:
    """Return the typical half-width; a bar where it can be compared with the numbers themselves."""
    if not release.states_accuracy or release.parts:
        return None
    half = np.asarray(release.accuracy("0.95"), float).reshape(-1)
    half = half[np.isfinite(half)]
    if not half.size:
        return None
    typical = np.quantile(half, 0.5, method="nearest")
    reach = reach_text(np.asarray([typical])).replace("+-", "±")
    if release.against != Release.measured_against:
        return Bar(label, None, f"{reach} {release.against.split()[0]}")
    values = np.abs(np.asarray(release.values, float))
    values = values[np.isfinite(values)]
    largest = float(values.max()) if values.size else 0.0
    share = min(1.0, float(typical) / largest) if largest else 1.0
    return Bar(label, share, reach)


# --- what one person risks ------------------------------------------------------------------------


def _at_risk(releases: Sequence[Release], accounts: Sequence[Account]) -> Block:
    title = "What one person risks"
    if not all(release.guarantee.private for release in releases):
        said = "Not bounded: the noise of at least one answer came from a public seed, for testing."
        return _block("risk", title, [said], "", [])
    bounded = sorted(
        (account for account in accounts if account.risk is not None),
        key=lambda account: -(account.risk or 0),
    )
    bars = [
        Bar(plain(account.name, SHOWN), account.risk, _chances(account.risk or 0))
        for account in bounded
    ]
    caption = f"From {100 * belief.PRIOR:g}% sure to at most so sure, by account"
    if not bounded:
        return _block("risk", title, _unbounded(releases, accounts, bounded), caption, bars)
    # One sentence says the risk: that of the account with the largest.
    lines = [bounded[0].warning or bounded[0].meaning]
    return _block(
        "risk", title, lines, caption, bars, notes=_risk_notes(releases, accounts, bounded)
    )


def _risk_notes(
    releases: Sequence[Release], accounts: Sequence[Account], bounded: Sequence[Account]
) -> list[str]:
    """Return what that sentence is about, and what it leaves out."""
    worst = bounded[0]
    further = worst.most or "others that it paid for add to that"
    cost = f"Its answers on this page cost {worst.together}; {further}."
    if worst.by_curves:
        cost = f"All its answers, those not on this page too, are bounded by {worst.together}."
    whom = worst.protects
    if len(accounts) > 1:
        whom = f"Account {plain(worst.name, LONGEST_SOURCE)} {whom.removeprefix('It ')}"
    said = [whom, cost]
    has_delta = "delta" in (worst.together or "")
    if has_delta and not worst.warning and "except with" in worst.meaning:
        # The probability beside a belief is not delta: ``belief.sentence`` takes ten times it.
        why = "A loss above epsilon can be more frequent than delta, so ten times delta is allowed."
        said.append(why)
    said += _unbounded(releases, accounts, bounded)
    if len(accounts) > 1:
        said.append("What several accounts spend on the same people adds up.")
    return said


def _unbounded(
    releases: Sequence[Release], accounts: Sequence[Account], bounded: Sequence[Account]
) -> list[str]:
    """Return what no bound holds for."""
    lines = []
    if len(accounts) > len(bounded):
        lines.append("The costs of some answers do not add up to one bound: see what was spent.")
    if any(release.receipt is None for release in releases):
        lines.append("No ledger confirms what answers without a receipt cost.")
    return lines


def _chances(risk: float) -> str:
    after = 100 * risk
    if after >= belief.ALMOST:
        return f"{belief.ALMOST:g}...%"
    return f"{rounded(after, 3 if after < 99 else 4, up=True)}%"


# --- blocks ---------------------------------------------------------------------------------------


def _block(
    name: str,
    title: str,
    lines: Sequence[str],
    caption: str,
    bars: Sequence[Bar],
    *,
    hatches: bool = False,
    notes: Sequence[str] = (),
) -> Block:
    kept = tuple(bars[:MOST_BARS])
    further = len(bars) - len(kept)
    return Block(name, title, tuple(lines), caption, kept, further, hatches, tuple(notes))


# --- small pictures ------------------------------------------------------------------------------

# Of a picture, in pixels.
WIDTH = 560
HEIGHT = 190


@dataclass(frozen=True)
class Glance:
    """One small picture of the front page.

    Attributes
    ----------
    title : str
    chart : Markup
    said : tuple of str
        Its numbers, as sentences.
    """

    title: str
    chart: Markup
    said: tuple[str, ...]


def glances(releases: Sequence[Release]) -> tuple[Glance, ...]:
    """The first trend over time and the first map of a page, as far as there are any."""
    trend = next((release for release in releases if _time_of(release) is not None), None)
    partitions = (release for release in releases if isinstance(release, Partition))
    plane = next((release for release in partitions if len(release.axes) == MAP_AXES), None)
    shown = []
    if trend is not None:
        shown.append(_glance(trend, "trend", _trend_words(trend)))
    if plane is not None:
        rows = plane.count()
        total = float(np.asarray(rows.value))
        reach = np.ceil(float(np.asarray(rows.high)) - total)
        said = f"In all: {number(round(total))} ± {number(reach)}, with 95% confidence."
        shown.append(
            _glance(plane, "map", (said, "Places that cannot be told from empty have no shade."))
        )
    return tuple(shown)


def _time_of(release: Release) -> LatticeAxis | None:
    """Return the only axis of counts or means, if it is one of time that runs on."""
    if not isinstance(release, HistogramRelease | AggregateRelease) or release.parts:
        return None
    lattice: Lattice = release.lattice
    if len(lattice.axes) != 1:
        return None
    (axis,) = lattice.axes
    runs_on = scales.is_continuous(axis) or axis.time is not None
    return axis if runs_on and axis.size > 1 else None


def _glance(release: Release, kind: str, said: tuple[str, ...]) -> Glance:
    title = heading_of(release)
    figure = style.at_a_glance(release.plot, WIDTH, HEIGHT, is_map=kind == "map")
    text = " ".join(said) or title
    chart = style.svg(figure, title, text, name=f"front-{kind}")
    return Glance(title, Markup(chart), said)


def _trend_words(release: Release) -> tuple[str, ...]:
    axis = _time_of(release.for_people())
    values = np.asarray(release.values, float).reshape(-1)
    low, _ = release.interval("0.95")
    # A mean that is not known has no value; a count may be 0 where its interval says so.
    is_count = isinstance(release, HistogramRelease)
    known = np.asarray(low).reshape(-1) > 0 if is_count else np.isfinite(values)
    if axis is None or not known.any():
        return ()
    names = [plain(name) for name in axis.cell_names()]
    told = np.where(known, values, -np.inf)
    largest = int(np.argmax(told))
    latest = int(np.flatnonzero(known)[-1])
    # The largest of several is only as sure as all of them at once.
    most = f"{_with_interval(release, largest, simultaneous=True)} ({names[largest]})"
    last = f"{_with_interval(release, latest, simultaneous=False)} ({names[latest]})"
    return f"Largest: {most}.", f"Latest: {last}.", "Each with 95% confidence."


def _with_interval(release: Release, at: int, *, simultaneous: bool) -> str:
    """Return a number with what it may be off: ± where that is the same on both sides."""
    numbers = (release.values, *release.interval("0.95", simultaneous))
    value, low, high = (float(np.asarray(part, float).reshape(-1)[at]) for part in numbers)
    if np.isclose(high - value, value - low):
        return f"{number(value)} ± {number(high - value)}"
    return f"{number(value)} ({number(low)} to {number(high)})"
