"""What a disclosure rests on: releases that belong together, their charges, and the account.

Everything is checked here, before a word is written: whether the releases are of one account and
one version, whether anybody edited them, and whether the ledger knows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.answers import Receipt, Release, signed_part
from sfumato.basics import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, to_bytes, valid
from sfumato.errors import DataError, LedgerError, UsageError, printable, shown
from sfumato.ledger import Account, Amount, Ledger, written
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, PureDP, Unit, approx_to_zcdp, charge
from sfumato.publishing.verifying import verify
from sfumato.risk.window import Window

# How a receipt writes what was charged.
CHARGED = re.compile(
    r"(?:epsilon = (?P<epsilon>[0-9.]{1,40})(?:, delta = (?P<delta>[0-9.]{1,40}))?"
    r"|rho = (?P<rho>[0-9.]{1,40}))"
)


@dataclass(frozen=True)
class Charge:
    """One entry of the ledger that paid for answers of the disclosure.

    Attributes
    ----------
    entry : int
    date : str
        The day of the charge, in UTC.
    rule : str
        The measure of the account that paid.
    amount : tuple of two int
        In the units of the rule.
    source : str
        The public label of the data.
    """

    entry: int
    date: str
    rule: str
    amount: Amount
    source: str

    def __str__(self) -> str:
        return written(self.rule, self.amount)


@dataclass(frozen=True)
class Evidence:
    """Releases of one account that were found to belong together.

    Attributes
    ----------
    releases : tuple of Release
        In the order of their charges, each once.
    windows : tuple of Window
        How their cost was chosen, where that was given.
    account, version : str
        Of all receipts.
    charges : tuple of Charge
        By number of entry.
    book : Account or None
        The account as the ledger has it.
    others : int
        How many further charges the account paid, for answers that are not among the releases.
    head : tuple of int and str, or None
        The number and the hash of the ledger's last entry.
    standing : str
        By whom or how the releases were verified, as a sentence.
    verified : bool
        Whether a ledger or a signature vouches for every release.
    """

    releases: tuple[Release, ...]
    windows: tuple[Window, ...]
    account: str
    version: str
    charges: tuple[Charge, ...]
    book: Account | None
    others: int
    head: tuple[int, str] | None
    standing: str
    verified: bool

    @property
    def unit(self) -> Unit:
        """The unit of the first release: all of them protect the same persons."""
        return self.releases[0].guarantee.unit

    @property
    def by_curves(self) -> CentralMeasure | None:
        """The total of the account, if it adds up by curves: as the ledger says, else a receipt."""
        if self.book is not None:
            return measure_of_money("approx", self.book.total) if self.book.by_curves else None
        receipts = [release.receipt for release in self.releases]
        return next((paid.total for paid in receipts if paid and paid.total), None)

    @property
    def rule(self) -> str:
        """The measure of the account."""
        return self.charges[0].rule

    @property
    def charged(self) -> Amount:
        """What the answers' charges add up to."""
        first = sum(charge.amount[0] for charge in self.charges)
        return first, sum(charge.amount[1] for charge in self.charges)

    @property
    def loss(self) -> CentralMeasure:
        """The privacy loss of the account so far; without a ledger, of these charges.

        By curves it is the total: what was spent of it is no guarantee by itself.
        """
        if self.by_curves is not None:
            return self.by_curves
        # People bear the loss of all charges of an account, also of those not described here.
        return measure_of_money(self.rule, self.book.spent if self.book else self.charged)

    @property
    def sources(self) -> tuple[str, ...]:
        """The labels of the data, each once."""
        return tuple(dict.fromkeys(charge.source for charge in self.charges))


def measure_of_money(rule: str, money: Amount) -> CentralMeasure:
    """An amount of an account as a measure; one without a delta is pure.

    >>> str(measure_of_money("approx", (500_000_000, 0)))
    'epsilon = 0.5'
    """
    if rule == "zcdp":
        return ZCDP(Fraction(money[0], RHO_UNITS))
    epsilon = Fraction(money[0], EPSILON_UNITS)
    delta = Fraction(money[1], DELTA_UNITS)
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def gathered(
    releases: Iterable[Release],
    *,
    windows: Sequence[Window] = (),
    ledger: Ledger | None = None,
    account: str | None = None,
) -> Evidence:
    """Check that releases belong together, and collect what they say of their charges.

    Parameters
    ----------
    releases : iterable of Release
    windows : sequence of Window
    ledger : Ledger or None
        The ledger that was charged.
    account : str or None
        The account that they are expected to be of.

    Raises
    ------
    UsageError
        If there are none, one has no receipt or is not private, or they are of different accounts,
        versions or privacy units.
    DataError
        If one was edited, or the ledger does not know it.
    LedgerError
        If the ledger itself was edited.
    """
    paid = _each_once(releases)
    described, receipts = zip(*paid, strict=True)
    remedy = "Write one document for each"
    name = _common([receipt.account for receipt in receipts], "accounts", remedy)
    remedy = "Publish all of them with one version, or write one document for each"
    version = _common([receipt.version for receipt in receipts], "versions of Sfumato", remedy)
    _common(
        [release.guarantee.unit.protects for release in described],
        "privacy units",
        "Their costs do not add up: write one document for each",
    )
    if account not in (None, name):
        raise UsageError(
            f"account = {shown(account)}",
            f"the releases were paid for by the account {shown(name)}",
            "Name that account, or none",
        )
    charges = _charges(paid)
    # The ledger is verified before it vouches for anything: an edited one could confirm edits.
    head = None if ledger is None else _head(ledger)
    standing, verified = _origin(described, ledger)
    book, others = _book(ledger, name, charges)
    if book is None or not book.by_curves:
        rules = [charge.rule for charge in charges]
        remedy = "An account counts in one measure, or by curves: give its ledger"
        _common(rules, "measures", remedy)
    return Evidence(
        releases=described,
        windows=tuple(windows),
        account=name,
        version=version,
        charges=charges,
        book=book,
        others=others,
        head=head,
        standing=standing,
        verified=verified,
    )


def _each_once(releases: Iterable[Release]) -> list[tuple[Release, Receipt]]:
    """Return the releases with their receipts, by entry and part; a copy is left out."""
    releases_by_part: dict[tuple[int, int], tuple[Release, Receipt]] = {}
    for release in releases:
        receipt = _receipt(release)
        part = re.fullmatch(r"([1-9][0-9]{0,8}) of ([1-9][0-9]{0,8})", receipt.part)
        if part is None or int(part[1]) > int(part[2]) or receipt.date is None:
            raise _edited(release, "no ledger writes such a receipt")
        place = receipt.entry, int(part[1])
        known = releases_by_part.setdefault(place, (release, receipt))
        # A copy has the same bytes; of two answers with one place, at least one was edited.
        if to_bytes(known[0]) != to_bytes(release):
            raise _edited(release, f"another one says that it is the same answer, {receipt.part}")
    if not releases_by_part:
        raise UsageError(
            "a disclosure of nothing",
            "there is no release to disclose",
            "Give at least one release, as Publisher.release or sf.load returns it",
        )
    # In the ledger's order, so that the order in which they are given changes nothing.
    return [releases_by_part[place] for place in sorted(releases_by_part)]


def _receipt(release: Release) -> Receipt:
    title = f"the disclosure of {shortened(release.heading)}"
    if not release.guarantee.private:
        raise UsageError(
            title,
            "its noise came from a public seed, so it protects nobody",
            "Publish it without sfumato.testing, and disclose that",
        )
    if release.receipt is None:
        raise UsageError(
            title,
            "it has no receipt, so nothing says what it cost",
            "Give a release that Publisher.release returned",
        )
    return release.receipt


def _common(values: Sequence[str], what: str, remedy: str) -> str:
    """Return what all releases have in common; differing ones are refused."""
    several = list(dict.fromkeys(values))
    if len(several) > 1:
        named = " and ".join(shown(value) for value in several[:2])
        raise UsageError(
            "one disclosure", f"its releases are of different {what}, such as {named}", remedy
        )
    return several[0]


def _charges(paid: Sequence[tuple[Release, Receipt]]) -> tuple[Charge, ...]:
    charges: dict[int, Charge] = {}
    hashes: dict[int, tuple[str, ...]] = {}
    for release, receipt in paid:
        rule, amount = _amount(release, receipt)
        made = Charge(receipt.entry, receipt.time[:10], rule, amount, shortened(receipt.source))
        same = (receipt.key, receipt.digest, receipt.entry_hash, receipt.part.split()[-1])
        if charges.setdefault(receipt.entry, made) != made:
            raise _edited(release, f"another receipt of entry {receipt.entry} says otherwise")
        if hashes.setdefault(receipt.entry, same) != same:
            raise _edited(release, f"another receipt of entry {receipt.entry} says otherwise")
        if not _is_covered(release.cost, made):
            raise _edited(release, "its guarantee costs more than its receipt says was charged")
    return tuple(charges[entry] for entry in sorted(charges))


def _amount(release: Release, receipt: Receipt) -> tuple[str, Amount]:
    """Return what a receipt says was charged, in whole units, and the rule of the account."""
    match = CHARGED.fullmatch(receipt.charged)
    if match is not None:
        epsilon, delta, rho = match.groups()
        try:
            if rho is not None:
                return "zcdp", ZCDP(rho).money
            if delta is None:
                return "pure", PureDP(epsilon).money
            return "approx", ApproxDP(epsilon, delta).money
        except UsageError:
            pass
    raise _edited(release, "no ledger writes such a charge")


def _is_covered(cost: CentralMeasure, paid: Charge) -> bool:
    """Return whether a charge pays for an answer of this cost.

    Several answers of one plan may share a rho that was charged as an epsilon and a delta.
    """
    if isinstance(cost, ZCDP) and paid.rule == "approx":
        whole = measure_of_money(paid.rule, paid.amount)
        return isinstance(whole, ApproxDP) and cost.rho <= _rho_of(whole)
    spent = charge(cost, paid.rule)
    return spent[0] <= paid.amount[0] and spent[1] <= paid.amount[1]


def _rho_of(paid: ApproxDP) -> Fraction:
    """Return the rho that an epsilon and a delta allow; 0 where they allow none."""
    try:
        return Fraction(approx_to_zcdp(paid.epsilon, paid.delta).rho)
    except UsageError:
        return Fraction(0)


def _origin(releases: Sequence[Release], ledger: Ledger | None) -> tuple[str, bool]:
    """Verify every release, and say by what."""
    if ledger is not None:
        for release in releases:
            verdict = verify(release, ledger)
            if not verdict.ok:
                reason = verdict.reason.rstrip(".").replace("It ", "it ", 1)
                raise _edited(release, reason.replace("The ", "the ", 1))
        return "Every answer was compared with the one stored in the ledger, and is the same.", True
    # Each of them is looked at: one signature that does not match refuses the whole document.
    unsigned = [release for release in releases if not _is_signed(release)]
    loaded = [release for release in unsigned if release.loaded]
    if loaded:
        which = "No answer" if len(loaded) == len(releases) else "Not every answer"
        advice = "Whoever has the ledger can verify them with sfumato disclose --ledger"
        return f"{which} was verified: they were read from files. {advice}.", False
    if unsigned:
        return "The answers were handed over by the program that published them.", False
    key = releases[0].receipt.signer if releases[0].receipt else ""
    return f"Every answer is signed, the first with the key {key}, and was not edited.", True


def _is_signed(release: Release) -> bool:
    """Return whether a release has a valid signature; an invalid one is refused."""
    receipt = release.receipt
    if receipt is None or not receipt.signature:
        return False
    # The receipt names its own key. So this finds edits, but not who signed: readers compare keys.
    if not valid(receipt.signer, receipt.signature, signed_part(release)):
        raise _edited(release, "it does not match its signature")
    return True


def _book(
    ledger: Ledger | None, account: str, charges: Sequence[Charge]
) -> tuple[Account | None, int]:
    """Return the account as the ledger has it, and how many of its charges are not described."""
    if ledger is None:
        return None, 0
    book = ledger.account(account)
    described = {charge.entry for charge in charges}
    # A reservation is spent even if no answer followed: it is never refunded.
    entries = ledger.log(account)
    paid = (entry.sequence for entry in entries if entry.kind == "reserve")
    return book, sum(number not in described for number in paid)


def _head(ledger: Ledger) -> tuple[int, str]:
    """Return the last entry of a ledger; one that was edited is refused."""
    audit = ledger.verify()
    if not audit.ok:
        raise LedgerError(
            "a disclosure from this ledger",
            str(audit.fault).rstrip("."),
            "Find out who edited it; sfumato ledger verify says what does not agree",
        )
    return audit.head


def _edited(release: Release, obstacle: str) -> DataError:
    return DataError(
        f"the disclosure of {shortened(release.heading)}",
        obstacle,
        "Do not publish it; ask the custodian for the release that was published",
    )


LONGEST_NAME = 120


def shortened(text: str) -> str:
    """A name as a document prints it: on one line, and cut where it is very long."""
    plain = printable(text[: LONGEST_NAME + 1])
    return plain if len(text) <= LONGEST_NAME else f"{printable(text[:LONGEST_NAME])}..."
