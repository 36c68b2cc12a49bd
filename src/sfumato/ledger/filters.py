"""What a charge adds to each of the filters by curves that must allow it, and whether they do.

A filter is fixed by its terms before the first answer. Orders that were chosen after an answer
would let that answer choose how it is counted.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache

from sfumato.basics import EPSILON_UNITS, RHO_UNITS
from sfumato.errors import UsageError
from sfumato.ledger.entries import NOTHING, Amount, Curve, MaybeCurve, curves_of, state_of
from sfumato.privacy.composition import Composition, State, plus
from sfumato.privacy.curves import Event, worst_event
from sfumato.privacy.measures import ZCDP, PureDP


def curve_after(composition: Composition, state: State, cost: Amount, event: str) -> Curve:
    """What a charge adds to a filter, and its state with that.

    Parameters
    ----------
    composition : Composition
        Of the filter.
    state : tuple of int
        Before the charge.
    cost : tuple of two int
        All that counts by sums.
    event : str
        All that counts by curves.
    """
    added = composition.adds(cost, _event(event) if event else None)
    return added, plus(state, added)


def allowed_curve(composition: Composition, state: State, cost: Amount, event: str) -> Curve | None:
    """What a charge adds to a filter, and its state with that; None where that does not fit."""
    curve = curve_after(composition, state, cost, event)
    return curve if composition.fits(curve[1]) else None


def worst_event_of(rule: str, amount: Amount) -> str:
    """The worst event of an amount of pure epsilon or of rho; "" of nothing.

    Several answers of epsilons that add up are an answer of their sum, and so with rho.
    """
    spent = amount[0]
    if not spent:
        return ""
    if rule == "zcdp":
        return str(worst_event(ZCDP(Fraction(spent, RHO_UNITS))))
    return str(worst_event(PureDP(Fraction(spent, EPSILON_UNITS))))


@lru_cache(maxsize=256)
def _event(text: str) -> Event:
    return Event.read(text)


@lru_cache(maxsize=256)
def allows(terms: str, event: str, after: str, before: str) -> bool:
    """Whether a charge may follow, as triggers of a file ask it: curves are JSON.

    It derives from the event what it adds. A filter that is not there has no terms and no curve.
    """
    if not terms:
        return not after
    composition = curves_of(terms)
    state = state_of(read(before), composition)
    try:
        expected = allowed_curve(composition, state, NOTHING, event)
    except UsageError:
        return False
    return expected is not None and text_of(expected) == after


def text_of(curve: MaybeCurve) -> str:
    """A curve as a file keeps it."""
    return json.dumps(curve, separators=(",", ":")) if curve else ""


def read(text: str) -> MaybeCurve:
    """Read a curve that `text_of` wrote."""
    if not text:
        return ()
    added, state = json.loads(text)
    return tuple(added), tuple(state)
