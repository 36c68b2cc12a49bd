"""What each account was charged, from the receipts of the releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sfumato.answers.receipt import Receipt
from sfumato.answers.release import Release
from sfumato.errors import printable
from sfumato.pages.headings import heading_of
from sfumato.privacy import belief
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, Measure, PureDP, compose
from sfumato.privacy.unit import Unit

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
    risk : float or None
        How sure somebody who was 1% sure of a person can become by them; None without such a cost.
    meaning : str
        The same as a sentence; otherwise empty.
    warning : str
        What that cost allows, if it protects hardly anyone; otherwise empty.
    """

    name: str
    protects: str
    charges: tuple[Charge, ...]
    together: str | None
    risk: float | None
    meaning: str
    warning: str


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
    units = [release.guarantee.unit for release, _ in paid]
    whole = _together([release for release, _ in paid])
    return Account(
        name,
        _protects(units),
        tuple(_charge(charges[place]) for place in sorted(charges)),
        None if whole is None else str(whole),
        None if whole is None else belief.afterwards(whole),
        "" if whole is None else _sentence(belief.sentence(whole, units[0])),
        "" if whole is None else belief.warning(whole, units[0]),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _entity(unit: Unit) -> tuple[object, ...]:
    """Whom a unit protects, and how: equal for two units whose costs add up.

    A person identified by a column is the same under every limit of rows. Without a column the
    limit itself says what is protected.
    """
    return unit.person, unit.neighbours, unit.rows_per_person if unit.person is None else None


def _protects(units: list[Unit]) -> str:
    """Whom an account protects, in words."""
    if len({_entity(unit) for unit in units}) > 1:
        return "Its answers protect different things, and their costs do not add up."
    unit = units[0]
    what = "replaced by another" if unit.neighbours == "replace" else "added or removed"
    if unit.person is not None:
        return f"It protects any one {printable(unit.person)}, {what}, with all its rows."
    if unit.rows_per_person > 1:
        return (
            f"It protects any {unit.rows_per_person:,} rows, {what}. "
            "A person with more rows is not protected as a whole."
        )
    return (
        f"It protects any single row, {what}. "
        "A person with several rows is not protected as a whole."
    )


def _place(receipt: Receipt) -> Place:
    """Which entry paid: two ledgers may have accounts of one name and entries of one number."""
    return receipt.entry, receipt.entry_hash


def _charge(paid: list[Paid]) -> Charge:
    _, receipt = paid[0]
    # An answer may be given twice, and is listed once.
    answers = dict.fromkeys(
        heading_of(release) if one.part == "1 of 1" else f"{heading_of(release)} ({one.part})"
        for release, one in paid
    )
    return Charge(receipt.entry, receipt.moment, receipt.charged, receipt.source, tuple(answers))


def _measures(releases: list[Release]) -> list[Measure]:
    """What each answer costs; answers of a plan that share a rho cost what was charged for it."""
    found: list[Measure] = []
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
            found.append(release.guarantee.measure)
    return [*found, *converted.values()]


def _together(releases: list[Release]) -> CentralMeasure | None:
    """The cost of all answers together.

    None if their measures or units differ, so that costs do not add up, or if one is not private.
    """
    # A release given twice was paid for once.
    by_charge = {
        (_place(release.receipt), release.receipt.part): release
        for release in releases
        if release.receipt is not None
    }
    guarantees = [release.guarantee for release in by_charge.values()]
    measures = _measures(list(by_charge.values()))
    central = [measure for measure in measures if isinstance(measure, PureDP | ApproxDP | ZCDP)]
    one_kind = len({isinstance(measure, ZCDP) for measure in measures}) == 1
    one_entity = len({_entity(guarantee.unit) for guarantee in guarantees}) == 1
    if len(central) < len(measures) or not one_kind or not one_entity:
        return None
    if not all(guarantee.private for guarantee in guarantees):
        return None
    return compose(central)
