"""What each account was charged, from the receipts that the releases carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.privacy.composition import compose
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.release import Receipt, Release


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
    """The charges of one account that this page shows, and what its answers promise together, where that adds up."""

    name: str
    charges: tuple[Charge, ...]
    together: str | None


def accounts(releases: Sequence[Release]) -> list[Account]:
    """Group releases by account and charge; a charge that paid for several answers is shown once."""
    held = [(release, release.receipt) for release in releases if release.receipt is not None]
    names = dict.fromkeys(receipt.account for _, receipt in held)
    return [_account(name, [(release, receipt) for release, receipt in held if receipt.account == name]) for name in names]


def _account(name: str, held: list[tuple[Release, Receipt]]) -> Account:
    charges: dict[int, list[tuple[Release, Receipt]]] = {}
    for release, receipt in held:
        charges.setdefault(receipt.entry, []).append((release, receipt))
    return Account(name, tuple(_charge(entry, charges[entry]) for entry in sorted(charges)), _together([r for r, _ in held]))


def _charge(entry: int, paid: list[tuple[Release, Receipt]]) -> Charge:
    receipt = paid[0][1]
    answers = tuple(dict.fromkeys(release.title if one.part == "1 of 1" else f"{release.title} ({one.part})" for release, one in paid))
    return Charge(entry, moment(receipt.time), receipt.charged, receipt.source, answers)


def _together(releases: list[Release]) -> str | None:
    """Add up the costs of distinct answers about one unit; None where their measures or units differ, or nothing is private."""
    distinct = {(r.receipt.entry, r.receipt.part): r for r in releases if r.receipt is not None}.values()
    measures = [r.guarantee.measure for r in distinct]
    central = [m for m in measures if isinstance(m, PureDP | ApproxDP | ZCDP)]
    alike = len({isinstance(m, ZCDP) for m in measures}) == 1 and len({r.guarantee.unit for r in distinct}) == 1
    if len(central) < len(measures) or not alike or not all(r.guarantee.private for r in distinct):
        return None
    return str(compose(central))


def moment(time: str) -> str:
    """Print a time of a receipt for people: the day and the minute, in UTC.

    >>> moment("2026-03-01T12:34:56.789Z")
    '2026-03-01, 12:34 UTC'
    """
    return f"{time[:10]}, {time[11:16]} UTC" if len(time) >= 16 and time[10] in "T " else time
