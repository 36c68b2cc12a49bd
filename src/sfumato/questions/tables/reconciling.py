"""Tables that were paid for separately, made to add up afterwards.

Histograms and families that counted the same rows are measurements of one family, each with noise
of its own. Least squares over all of them costs nothing, since it sees released numbers only. What
has to be the same is read off the releases: the unit with its limits and conditions, the axes, the
data that the receipts name, and which rows an axis drops.

A receipt says nothing that follows from the data, and so it cannot say that they stayed the same.
Answers of one plan counted the same rows. For others the custodian says so, by a version of the
source or by ``same_data``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple, Never

import msgspec
import numpy as np

from sfumato.answers import Receipt, Release
from sfumato.basics import Array
from sfumato.domain import Lattice, LatticeAxis
from sfumato.errors import UsageError, explained, printable
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, TruncatedLaplace
from sfumato.privacy import EXACT, ZCDP, Guarantee, Proof, compose
from sfumato.questions.histogram.question import HistogramRelease
from sfumato.questions.tables.asked import named, require_connected
from sfumato.questions.tables.design import Measurement, published_arrays
from sfumato.questions.tables.levels import Chains, Margin
from sfumato.questions.tables.question import Tables
from sfumato.questions.tables.release import TablesRelease
from sfumato.questions.tables.totals import KnownTable, agree, dropped_rows

ASKED = "sf.reconcile"
PROOF = Proof(
    sensitivity="as stated by each of the releases.",
    because="least squares sees released numbers only, and what follows from releases costs "
    "nothing; the costs of the releases add up.",
    not_covered="as stated by each of the releases.",
    source="post-processing and composition: Dwork, Roth 2014, Prop. 2.1 and Thm 3.14; for rho, "
    "Bun, Steinke 2016, Lemma 1.7 and 1.8; estimates: Xiao et al. 2023, Thm 5.",
)


class FamilyPart(NamedTuple):
    """What one release adds to the family.

    Attributes
    ----------
    release : HistogramRelease or TablesRelease
    tables : tuple of tuple of str
        The tables that were asked for.
    lattice : Lattice
        All axes on which its rows have a cell.
    measured : tuple of Measurement
    numbers : list of int64 ndarray
        What was published of each measurement, with one dimension for each axis of the lattice.
    """

    release: Release
    tables: tuple[tuple[str, ...], ...]
    lattice: Lattice
    measured: tuple[Measurement, ...]
    numbers: list[Array]


@explained
def reconcile(
    releases: Sequence[Release] = (), *others: Never, same_data: bool = False
) -> TablesRelease:
    """Make tables that were paid for separately add up. This costs nothing.

    Parameters
    ----------
    releases : sequence of HistogramRelease or TablesRelease
        At least two answers about the same rows: of the same unit, limits, conditions and version
        of the data. They share axes, with the same cells. Each has noise of its own, so no answer
        may be given twice.
    *others
        Nothing: all answers come in one list.
    same_data : bool
        Whether you know that the data were the same, although the receipts cannot say so. Answers
        of one plan, and those of one ledger about a source with a ``version``, need no such
        statement.

    Returns
    -------
    TablesRelease
        The family of all tables that were asked for. Its guarantee is that of all releases
        together. It has no receipt of its own: ``paid_by`` has theirs.

    Raises
    ------
    UsageError
        If a release is no table of counts with noise on each; if units, limits, conditions, data or
        the cells of an axis differ; if an axis that not all tables have may drop rows; if persons'
        rows were chosen anew; or if tables share no axis.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 90, missing=True), ward=sf.Categories(
    ...     ["a", "b"], other="else", missing="not known"))
    >>> visits = {"age": np.array([31.0, 64.0, 70.0]), "ward": np.array(["a", "b", "b"])}
    >>> import pyarrow as pa
    >>> src = sf.source(pa.table(visits), domain, name="visits", version="2026")
    >>> publisher = sf.Publisher(src, budget="2")
    >>> ages = publisher.release(sf.Histogram("age", bins=3), epsilon="1")
    >>> crossed = publisher.release(sf.Histogram(["age", "ward"], bins=3), epsilon="1")
    >>> family = sf.reconcile([ages, crossed])
    >>> bool(np.allclose(family["age", "ward"].values.sum(axis=1), family["age"].values))
    True
    >>> str(family.guarantee.measure)
    'epsilon = 2'
    """
    # What would make noise count twice is refused first, then what makes the rows differ.
    parts = _parts(releases, others)
    _require_different(parts)
    _require_same_unit(parts)
    _require_same_data(parts, same_data)
    lattice = _whole_lattice(parts)
    chains = Chains.of(lattice)
    _require_same_rows(parts, chains)
    if not same_data:
        _require_one_ledger(parts)
    tables = _tables(parts)
    require_connected(tables, chains)
    measured: list[Measurement] = []
    noisy: list[Array] = []
    for part in parts:
        for measurement, numbers in zip(part.measured, part.numbers, strict=True):
            margin, moved = _on(chains, part, measurement, numbers)
            measured.append(msgspec.structs.replace(measurement, margin=margin))
            noisy.append(moved)
    return TablesRelease(
        question=Tables(tables),
        tables=tables,
        lattice=lattice,
        measured=tuple(measured),
        noisy=np.concatenate(noisy),
        guarantee=_guarantee(parts),
        totals=_totals(parts, chains) or msgspec.UNSET,
        paid_by=_receipts(parts),
        trees=chains.trees,
    )


# --- what a release adds --------------------------------------------------------------------------


def _parts(releases: Sequence[Release], others: Sequence[object]) -> list[FamilyPart]:
    if others:
        raise UsageError(
            f"{ASKED} with {1 + len(others)} arguments",
            "the answers are one argument, which is a list",
            f"Write {ASKED}([first, second])",
        )
    if isinstance(releases, Release) or not isinstance(releases, Sequence) or len(releases) < 2:
        raise UsageError(
            ASKED,
            "it makes at least two answers agree",
            "Give a list of histograms or families of tables",
        )
    return list(map(_family_part, releases))


def _family_part(release: Release) -> FamilyPart:
    match release:
        case TablesRelease():
            numbers = published_arrays(release.chains.levels, release.measured, release.noisy)
            return FamilyPart(release, release.tables, release.lattice, release.measured, numbers)
        case HistogramRelease(noise=law, lattice=lattice):
            if isinstance(law, TruncatedLaplace):
                raise _unsuited(release, "its noise has a bound, and that of estimates has none")
            if not isinstance(law, DiscreteLaplace | DiscreteGaussian) or release.rows is not None:
                raise _unsuited(release, "its counts do not each have noise of their own")
            if release.question.count != "rows":
                raise _unsuited(release, "it counts persons, who may be in several cells")
            measured = (Measurement((1,) * len(lattice.axes), law),)
            return FamilyPart(release, (lattice.names,), lattice, measured, [release.values])
        case _:
            raise _unsuited(release, "it is no table of counts")


def _unsuited(release: Release, obstacle: str) -> UsageError:
    title = release.title if isinstance(release, Release) else type(release).__name__
    return UsageError(
        f"{ASKED} of {title}",
        obstacle,
        "Give histograms of rows over known cells, or families of tables",
    )


def _receipts(parts: Sequence[FamilyPart]) -> tuple[Receipt, ...]:
    receipts: list[Receipt] = []
    for part in parts:
        release = part.release
        if isinstance(release, TablesRelease) and release.paid_by is not msgspec.UNSET:
            receipts += release.paid_by
        elif release.receipt is not None:
            receipts.append(release.receipt)
    return tuple(receipts)


# --- what has to be the same ----------------------------------------------------------------------


def _pair(first: FamilyPart, second: FamilyPart) -> str:
    return f"{ASKED} of {first.release.title} and {second.release.title}"


def _require_different(parts: Sequence[FamilyPart]) -> None:
    """Refuse an answer that is given twice: its noise would be taken for independent noise."""
    for part in parts:
        if not _receipts([part]):
            raise _unsuited(part.release, "it has no receipt, which says about which data it is")
    for first, second in combinations(parts, 2):
        if _paid_places(first) & _paid_places(second):
            raise UsageError(
                _pair(first, second), "they hold the same answer", "Give each answer once"
            )


def _paid_places(part: FamilyPart) -> set[tuple[str, str]]:
    """Return where in its ledger each answer was paid for, which no two answers share."""
    return {(receipt.entry_hash, receipt.part) for receipt in _receipts([part])}


def _require_same_unit(parts: Sequence[FamilyPart]) -> None:
    first = parts[0]
    for other in parts[1:]:
        units = [part.release.guarantee.unit.uncalled for part in (first, other)]
        if units[0] != units[1]:
            words = [str(unit) for unit in units]
            if words[0] == words[1]:  # they differ in the column that names the person
                words = [unit.protects for unit in units]
            raise UsageError(
                _pair(first, other),
                f"the one protects {words[0]}, and the other {words[1]}",
                "Reconcile answers of one source, with the same limits and conditions",
            )
    if first.release.guarantee.unit.by_cell:
        raise UsageError(
            _pair(first, parts[-1]),
            "under limits by cell each table counts rows of its own",
            "Give the source rows_per_person alone",
        )


def _require_same_data(parts: Sequence[FamilyPart], same_data: bool) -> None:
    receipts = _receipts(parts)
    if len({receipt.entry_hash for receipt in receipts}) == 1:
        return  # paid by one charge, and so counted in one state of the data
    unit = parts[0].release.guarantee.unit
    names = list(dict.fromkeys(receipt.data(unit.conditions) for receipt in receipts))
    if len(names) > 1:
        raise UsageError(
            _pair(parts[0], parts[-1]),
            f"they are about {names[0]} and about {names[1]}",
            "Reconcile answers about the same data",
        )
    if not same_data and names[0].version is None:
        raise UsageError(
            f"{ASKED} of answers about {names[0]}",
            "they were charged one by one, and no receipt says whether the data changed meanwhile",
            "Ask in one plan, give the source version=, or say same_data=True if you know "
            "that they did not change",
        )
    if unit.person is not None:
        raise UsageError(
            _pair(parts[0], parts[-1]),
            f"which rows of {unit.anyone} are counted is chosen anew for each charge",
            "Ask for the tables in one plan, or as sf.Tables",
        )


def _require_one_ledger(parts: Sequence[FamilyPart]) -> None:
    """Refuse answers of two ledgers: a name and a version are those of one."""
    receipts = _receipts(parts)
    # A ledger has one key, by which it signs, and one entry of each number. Receipts need not show
    # that they are of two ledgers.
    signers = {receipt.signer for receipt in receipts if receipt.signer}
    entries = {(receipt.entry, receipt.entry_hash) for receipt in receipts}
    if len(signers) > 1 or len({number for number, _ in entries}) < len(entries):
        raise UsageError(
            _pair(parts[0], parts[-1]),
            "two ledgers paid for them, and the same name may stand for other data in each",
            "Say same_data=True if you know that the data are the same",
        )


def _whole_lattice(parts: Sequence[FamilyPart]) -> Lattice:
    axes: dict[str, tuple[LatticeAxis, FamilyPart]] = {}
    for part in parts:
        for axis in part.lattice.axes:
            known, first = axes.setdefault(axis.name, (axis, part))
            if known != axis:
                raise UsageError(
                    _pair(first, part),
                    f"{printable(axis.name)} has other cells in the one than in the other",
                    "Ask with the same bins or labels",
                )
    return Lattice(tuple(axis for axis, _ in axes.values()))


def _require_same_rows(parts: Sequence[FamilyPart], chains: Chains) -> None:
    """Refuse an axis that drops rows from some of the tables only."""
    for axis in chains.lattice.axes:
        same = set(chains.names[chains.order([axis.name])[0]])
        without = [part for part in parts if not same & set(part.lattice.names)]
        if without and (dropped := dropped_rows(axis)):
            having = next(part for part in parts if axis.name in part.lattice.names)
            raise UsageError(
                _pair(having, without[0]),
                f"{printable(axis.name)} drops rows {dropped.which}, which the other one counts",
                f"{dropped.remedy}, or ask for the tables as sf.Tables",
            )


# --- the family -----------------------------------------------------------------------------------


def _tables(parts: Sequence[FamilyPart]) -> tuple[tuple[str, ...], ...]:
    tables: dict[frozenset[str], tuple[str, ...]] = {}
    for part in parts:
        for table in part.tables:
            tables.setdefault(frozenset(table), table)
    return tuple(tables.values())


def _on(
    chains: Chains, part: FamilyPart, measured: Measurement, numbers: Array
) -> tuple[Margin, Array]:
    own = Chains.of(part.lattice)
    if not measured.whole:
        # Differences are against the last sibling of a level: siblings have to be the same ones.
        for names, levels in zip(own.names, own.levels, strict=True):
            if chains.levels[chains.order(names)[0]] != levels:
                raise _unsuited(part.release, f"its noise is on differences within {names[0]}")
    return _moved(chains, own, measured.margin, numbers)


def _moved(chains: Chains, own: Chains, margin: Margin, numbers: Array) -> tuple[Margin, Array]:
    """Return a table of one answer, and its numbers, in the order of the whole family."""
    of_whole = [chains.order(names)[0] for names in own.names]
    flat = np.ascontiguousarray(numbers.transpose(np.argsort(of_whole))).ravel()
    return chains.margin(own.table(margin)), flat


def _totals(parts: Sequence[FamilyPart], chains: Chains) -> tuple[KnownTable, ...]:
    nesting = chains.nesting
    totals: dict[Margin, Array] = {}
    for part in parts:
        if not isinstance(part.release, TablesRelease):
            continue
        for margin, counts in part.release.known.items():
            moved, flat = _moved(chains, Chains.of(part.lattice), margin, counts)
            table = flat.reshape(nesting.shape(moved))
            if not all(agree(moved, table, other, totals[other], nesting) for other in totals):
                raise UsageError(
                    _pair(parts[0], part),
                    "their public totals contradict each other",
                    "Reconcile answers that were asked with the same totals",
                )
            totals[moved] = table
    return tuple(KnownTable(margin, counts.ravel()) for margin, counts in totals.items())


def _guarantee(parts: Sequence[FamilyPart]) -> Guarantee:
    costs = [part.release.cost for part in parts]
    if len({isinstance(cost, ZCDP) for cost in costs}) > 1:
        raise UsageError(
            _pair(parts[0], parts[-1]),
            "some cost rho and others epsilon, which do not add up to one number",
            "Reconcile answers of one account that counts rho, or of others that count epsilon",
        )
    # All were found to protect the same unit, so the first one's stands for all.
    promises = [part.release.guarantee for part in parts]
    assumptions = dict.fromkeys(line for promise in promises for line in promise.assumptions)
    slacks = dict.fromkeys(promise.slack for promise in promises)
    slacks.pop(EXACT, None)
    listed = ", ".join(named(table) for part in parts for table in part.tables)
    return Guarantee(
        measure=compose(costs),
        unit=promises[0].unit,
        mechanism=f"none of its own: least squares over released tables ({listed})",
        proof=PROOF,
        assumptions=tuple(assumptions),
        slack="; ".join(slacks) or EXACT,
        private=all(promise.private for promise in promises),
        counted=promises[0].counted,
    )
