"""How the spenders of a ledger are recomputed from its entries.

A spender's sum is written in each of their charges. It must follow from the charges before it, and
stay within the ceiling that was set last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.ledger.chain import ceiling_of
from sfumato.ledger.entries import NOTHING, Amount, Entry


@dataclass(slots=True)
class Spenders:
    """What each spender of each account may spend, and has spent, as far as the entries go."""

    _ceilings: dict[tuple[str, str], Amount] = field(default_factory=dict)
    _own: dict[tuple[str, str], Amount] = field(default_factory=dict)
    _limited: set[str] = field(default_factory=set)

    def fault(self, entry: Entry) -> str | None:
        """What is wrong with the spender of the next entry, as the end of a sentence."""
        if not entry.spender:
            return self._without(entry)
        whose = (entry.account, entry.spender)
        before = self._own.get(whose, NOTHING)
        after = (before[0] + entry.cost[0], before[1] + entry.cost[1])
        self._own[whose] = after
        if entry.kind == "cap":
            self._limited.add(entry.account)
            self._ceilings[whose] = ceiling_of(entry.note)
        elif entry.kind != "reserve":
            return f"is no charge, and names the spender {entry.spender!r}"
        if entry.own != after:
            return "states a sum of its spender that does not follow from the entries before it"
        most = self._ceilings.get(whose, NOTHING)
        if entry.kind == "reserve" and (after[0] > most[0] or after[1] > most[1]):
            return f"takes the spender {entry.spender!r} over their ceiling"
        return None

    def _without(self, entry: Entry) -> str | None:
        if entry.own != NOTHING:
            return "states a sum of a spender that it does not name"
        if entry.kind == "reserve" and entry.account in self._limited:
            return f"is charged to account {entry.account!r} by none of its spenders"
        return None
