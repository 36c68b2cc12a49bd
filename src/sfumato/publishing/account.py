"""The ledger account at whose expense a publisher publishes, and receipts and signatures.

Receipts and signatures prove that a release was paid for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from sfumato._version import __version__
from sfumato.answers import Receipt, Release, signed_part, with_receipt
from sfumato.basics import Exactly
from sfumato.data import Source
from sfumato.errors import BudgetExceeded, UsageError, warn_once
from sfumato.ledger import Account, Binding, Entry, Ledger, stated_terms, written
from sfumato.ledger.book import open_to_charge
from sfumato.ledger.entries import charge_in_words, spent_in_words
from sfumato.privacy import (
    KINDS,
    CentralMeasure,
    Event,
    Money,
    charge_together,
    curves_of,
    in_measure,
    rule_of,
    stated_total,
    total_of,
)
from sfumato.publishing.divisions import Choice

FORGETS = (
    "This account is in memory, and forgets what it spent when the program ends. "
    'Write ledger="sfumato.db" to keep it.'
)


class PublisherAccount:
    """One account of a ledger, opened for one source.

    Parameters
    ----------
    source : Source
        Whose unit and name the account's charges must have in common.
    ledger, account, budget, ceiling, spender
        As for `Publisher`.

    Attributes
    ----------
    ledger : Ledger
    name : str
    lasts : bool
        Whether the ledger was given: one that was not ends with this process.
    binding : Binding
        What every charge states: whom it protects, of which data set, under which ceiling.
    rule : str
        The measure in which the account counts.
    by_curves : bool
        Whether the account adds up divergences, and not amounts.
    counts_events : bool
        Whether its charges state what they draw: it adds up by curves, or may be widened to do so.
    total_by_curves : str
        What it then promises for all its answers together; else "".
    budget : str
        What it may ever spend, as receipts say it; "" of an account by curves. One that may be
        widened may come to spend what it is widened to.
    spender : str or None
        Who spends, as the user states it.
    """

    def __init__(
        self,
        source: Source,
        *,
        ledger: str | Path | Ledger | None,
        account: str | None,
        budget: Exactly | CentralMeasure | None,
        ceiling: Exactly | CentralMeasure | None,
        spender: str | None = None,
    ) -> None:
        total = None if budget is None else stated_total(budget, "budget")
        most = None if ceiling is None else stated_total(ceiling, "ceiling")
        if most is not None:
            _require_ceiling(most, source, total)
        self.spender = spender
        self.ledger = _opened(ledger)
        self.lasts = ledger is not None
        if ledger is None:
            # Three levels up is whoever made the publisher. Whoever asks again spends again.
            warn_once(FORGETS, stacklevel=3)
        self.name = "default" if account is None else account
        self.binding = Binding(source.unit.protects, source.name or "")
        self._total = total
        self._is_open = False
        # An account for others is refused here already, and not only when it is charged.
        account_now = self.now
        self.ledger.fits(account_now, self.binding)
        self._counts_as(account_now)
        if most is None:
            return
        if rule_of(most) != self.rule:
            raise _other_measure(most, self.rule)
        # Every charge states it; of an open account it is fixed at once.
        self.binding = replace(self.binding, ceiling=total_of(most), terms=stated_terms(most))
        if self.is_open:
            self.ledger.cap(self.name, self.binding)

    @property
    def is_open(self) -> bool:
        """Whether the ledger has the account; once it has it, it has it for ever.

        Raises
        ------
        UsageError
            If it has it with another total than the one stated.
        """
        if not self._is_open and self._is_found():
            # Another process may have opened it since this one planned in the measure of its own.
            if self._total is not None:
                self._as_stated(self._total)
            self._is_open = True
        return self._is_open

    def _is_found(self) -> bool:
        with suppress(UsageError):
            self.ledger.account(self.name)
            return True
        return False

    def _counts_as(self, account_now: Account) -> None:
        self.rule = account_now.rule
        self.by_curves = account_now.by_curves
        self.total_by_curves = written(self.rule, account_now.total) if self.by_curves else ""
        # An account that may be widened later may have been so by the time of a charge.
        self.counts_events = bool(account_now.terms)
        self.budget = ""
        if not self.by_curves:
            terms = account_now.terms
            most = ("approx", curves_of(terms).total) if terms else (self.rule, account_now.total)
            self.budget = written(*most)

    def renew(self) -> None:
        """Look whether an account that may be widened was: its measure and promise are others."""
        if self.counts_events and not self.by_curves:
            self._counts_as(self.now)

    @property
    def now(self) -> Account:
        """The account as it stands now, or as it will be opened."""
        if self._total is None:
            return self.ledger.account(
                self.name,
                remedy="Name an account that exists, or give its budget to open it (command line: "
                "--budget 2)",
            )
        if self.is_open:
            return self._as_stated(self._total)
        rule = rule_of(self._total)
        return Account(
            self.name, rule, total_of(self._total), (0, 0), terms=stated_terms(self._total)
        )

    def _as_stated(self, total: CentralMeasure) -> Account:
        """Return the account, which is open; refused where its total is another one."""
        return self.ledger.open_account(
            self.name, rule_of(total), total_of(total), stated_terms(total)
        )

    def open(self, money: Money = (0, 0)) -> None:
        """Open the account, if there is none yet and it can pay its first charge.

        Raises
        ------
        BudgetExceeded
            If the charge is above the whole total. Nothing is written then.
        """
        if self.is_open:
            return
        for other, known in self.ledger.paid_beside(self.name, self.binding):
            warn_once(
                f"A new account in {self.ledger.label}. Another ledger, {other!r}, is in the same "
                f"folder: account {known.name!r} there protects {known.protects}, and spent "
                f"{spent_in_words(known)}. If these are the same persons, what they risk adds up; "
                f"to go on with that ledger, name it (command line: --ledger {other}).",
                # Four levels up is whoever asked for the release.
                stacklevel=4,
            )
        new = self.now
        self.ledger.open_account(self.name, new.rule, new.total, new.terms, first_charge=money)
        if self.binding.ceiling is not None:
            self.ledger.cap(self.name, self.binding)

    @property
    def remaining(self) -> object:
        """What is left: an epsilon or a rho as a Fraction, or a pair of epsilon and delta."""
        if not self.is_open:
            return in_measure(self.now.remaining, self.rule)
        return in_measure(self.ledger.left(self.name, self.spender), self.rule)

    def money(
        self, used: Sequence[CentralMeasure], event: Event | None, choice: Choice | None = None
    ) -> Money:
        """What several answers cost together, in the account's units, each rounded up.

        Parameters
        ----------
        used : sequence of measure
            What each of them costs.
        event : Event or None
            What they draw: an account by curves counts it, and takes costs of every measure.
        choice : Choice or None
            What was picked for their plan.
        """
        if event is not None and self.by_curves:
            return event.money
        if choice is not None:
            return choice.money(used, self.rule)
        return charge_together(used, self.rule)

    def charged(self, money: Money, event: Event | None) -> str:
        """Write a charge as receipts say it."""
        if event is None or not self.by_curves:
            return written(self.rule, money)
        # Widened since the plan was made, an account is charged the event, and not the money.
        return charge_in_words(self.rule, event.money, event.rho_units)

    def payable(self, event: Event) -> str:
        """Say how many answers that draw an event the account, which is by curves, can pay now."""
        account = self.now
        number = account.composition.remaining_answers(account.state, event.money, event)
        return f"account {self.name!r} can pay {number:,} such answers{account.beside_sums(event)}"

    @contextmanager
    def refusing_in_measure(self, money: Money, event: Event | None) -> Iterator[None]:
        """Let a refusal for lack of budget carry amounts in the account's measure, not in units.

        By curves, an answer in rho costs neither epsilon nor delta: its refusal carries the rho.
        """
        try:
            yield
        except BudgetExceeded as error:
            error.requested = in_measure(money, self.rule)
            if event is not None and not any(money):
                error.requested = event.rho
            match error.remaining:
                case (int(first), int(second)):
                    error.remaining = in_measure((first, second), self.rule)
            raise


def _opened(ledger: str | Path | Ledger | None) -> Ledger:
    if ledger is None or isinstance(ledger, str | Path):
        return open_to_charge(ledger)
    if not isinstance(ledger, Ledger):
        raise UsageError(
            f"ledger = {type(ledger).__name__}",
            "it is neither a path nor a ledger",
            'Write ledger="sfumato.db"',
        )
    return ledger


def _require_ceiling(most: CentralMeasure, source: Source, total: CentralMeasure | None) -> None:
    """Refuse a ceiling of no data set, or in another measure than the total that is stated."""
    if source.name is None:
        raise UsageError(
            f"a ceiling of {most}",
            "a ceiling is that of a data set, and this source has no name",
            "Give sf.source(..., name=...)",
        )
    if total is not None and rule_of(most) != rule_of(total):
        raise _other_measure(most, rule_of(total))


def _other_measure(most: CentralMeasure, rule: str) -> UsageError:
    return UsageError(
        f"a ceiling of {most}",
        f"the account counts {KINDS[rule]}",
        "Write the ceiling as the budget is written",
    )


R = TypeVar("R", bound=Release)


def receipt_of(
    entry: Entry,
    charged: str,
    source: str,
    part: str = "1 of 1",
    picked: str = "",
    named: str = "",
    by_curves: str = "",
    budget: str = "",
) -> Receipt:
    """Return what proves a charge: the ledger entry that paid, and what it paid for."""
    return Receipt(
        account=entry.account,
        key=entry.key,
        digest=entry.digest,
        entry=entry.sequence,
        entry_hash=entry.hash,
        time=entry.time,
        charged=charged,
        part=part,
        source=source,
        version=__version__,
        picked=picked,
        named=named,
        by_curves=by_curves,
        budget=budget,
    )


def as_of_its_day(release: R) -> R:
    """Return a stored answer that says the day on which it was paid for."""
    receipt = release.receipt
    return release if receipt is None else with_receipt(release, as_of=receipt.time[:10])


def signed(release: R, ledger: Ledger) -> R:
    """Return the release with the ledger's signature, or with none if it cannot sign.

    The ledger has no key, or the caller may not use it. A signature of before would be false then:
    the release has other words.
    """
    signer = ledger.signer()
    # The signature covers the signer's name, which therefore goes into the receipt first.
    unsigned = with_receipt(release, signer=signer or "", signature="")
    if signer is None or release.receipt is None:
        return unsigned
    return with_receipt(unsigned, signature=ledger.sign(signed_part(unsigned)))
