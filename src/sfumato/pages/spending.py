"""What each account was charged, from the receipts that the releases carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.answers.receipt import Receipt
from sfumato.answers.release import Release
from sfumato.errors import printable
from sfumato.privacy import belief
from sfumato.privacy.composition import compose
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit


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
    """The charges of one account that this page shows, and what its answers promise together, where that adds up, with what that allows."""

    name: str
    protects: str
    charges: tuple[Charge, ...]
    together: str | None
    warning: str


def accounts(releases: Sequence[Release]) -> list[Account]:
    """Group releases by account and charge; a charge that paid for several answers is shown once."""
    held = [(release, release.receipt) for release in releases if release.receipt is not None]
    names = dict.fromkeys(receipt.account for _, receipt in held)
    return [
        _account(name, [(release, receipt) for release, receipt in held if receipt.account == name])
        for name in names
    ]


def _account(name: str, held: list[tuple[Release, Receipt]]) -> Account:
    charges: dict[int, list[tuple[Release, Receipt]]] = {}
    for release, receipt in held:
        charges.setdefault(receipt.entry, []).append((release, receipt))
    units = [release.guarantee.unit for release, _ in held]
    whole = _together([release for release, _ in held])
    return Account(
        name,
        _protects(units),
        tuple(_charge(entry, charges[entry]) for entry in sorted(charges)),
        None if whole is None else str(whole),
        "" if whole is None else belief.warning(whole, units[0]),
    )


def _entity(unit: Unit) -> tuple[object, ...]:
    """Whom a unit protects, and how. Persons that a column names are the same under every limit; else the stated number of rows counts."""
    return unit.person, unit.neighbours, unit.rows_per_person if unit.person is None else None


def _protects(units: list[Unit]) -> str:
    """Whom an account protects, in words."""
    if len({_entity(unit) for unit in units}) > 1:
        return "Its answers protect different things, and their costs do not add up."
    unit, what = (
        units[0],
        "replaced by another" if units[0].neighbours == "replace" else "added or removed",
    )
    if unit.person is not None:
        return f"It protects any one {printable(unit.person)}, {what}, with all its rows."
    if unit.rows_per_person > 1:
        return f"It protects any {unit.rows_per_person:,} rows, {what}. Whoever has more rows is not protected as a whole."
    return (
        f"It protects any single row, {what}. Whoever has several rows is not protected as a whole."
    )


def _charge(entry: int, paid: list[tuple[Release, Receipt]]) -> Charge:
    receipt = paid[0][1]
    answers = tuple(
        dict.fromkeys(
            release.title if one.part == "1 of 1" else f"{release.title} ({one.part})"
            for release, one in paid
        )
    )
    return Charge(entry, moment(receipt.time), receipt.charged, receipt.source, answers)


def _together(releases: list[Release]) -> CentralMeasure | None:
    """Add up the costs of distinct answers that protect the same; None where their measures or units differ, or nothing is private."""
    distinct = {
        (r.receipt.entry, r.receipt.part): r for r in releases if r.receipt is not None
    }.values()
    measures = [r.guarantee.measure for r in distinct]
    central = [m for m in measures if isinstance(m, PureDP | ApproxDP | ZCDP)]
    alike = (
        len({isinstance(m, ZCDP) for m in measures}) == 1
        and len({_entity(r.guarantee.unit) for r in distinct}) == 1
    )
    if len(central) < len(measures) or not alike or not all(r.guarantee.private for r in distinct):
        return None
    return compose(central)


def moment(time: str) -> str:
    """Print a time of a receipt for people: the day and the minute, in UTC.

    >>> moment("2026-03-01T12:34:56.789Z")
    '2026-03-01, 12:34 UTC'
    """
    return f"{time[:10]}, {time[11:16]} UTC" if len(time) >= 16 and time[10] in "T " else time
