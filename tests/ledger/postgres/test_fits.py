"""What fits on the server: no less than the library allows, and hardly more."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

from sfumato.basics.numbers import DELTA_UNITS, least_whole
from sfumato.ledger.postgres import PostgresStore
from sfumato.privacy.composition import Curves, State, opened_curves
from sfumato.privacy.curves import Event

TOTALS = [
    opened_curves(Fraction(epsilon), Fraction(delta))
    for epsilon, delta in product(("1/2", "2", "5.21", "100"), ("1e-4", "1e-6", "1e-12"))
]
EVENTS = [
    "laplace(1, 10)",
    "laplace(3, 20)",
    "pure(1/7)",
    "pure(2)",
    "exponential(1/3)",
    "zcdp(1/1000)",
    "laplace(1, 50) + zcdp(1/3000)",
    "approx(1/20, 1/100000000000000)",
]


def states_at_the_edge(curves: Curves) -> list[State]:
    """The last state that fits, and the first that does not, for each kind of answer."""
    states: list[State] = []
    for text in EVENTS:
        event = Event.read(text)
        added = curves.adds((0, 0), event)
        most = curves.remaining_answers(curves.start, event.money, event)
        states += [tuple(answers * number for number in added) for answers in (most, most + 1)]
    # One unit of epsilon above the total, where the whole loss exceeds it by hardly anything.
    above, _, *others = states[0]
    states.append((curves.total[0] + 1, 0, *others))
    assert above
    return states


@pytest.mark.parametrize("curves", TOTALS, ids=lambda curves: str(curves.total))
def test_the_server_agrees_with_the_library_at_every_edge(
    open_store: Callable[[], PostgresStore], curves: Curves
) -> None:
    states = states_at_the_edge(curves)
    terms = curves.terms
    on_server = open_store().database.reading(
        lambda ask: [next(iter(ask("SELECT fits(?, ?)", (terms, list(s)))))[0] for s in states]
    )
    in_library = [curves.fits(state) for state in states]
    assert on_server == in_library
    assert True in in_library
    assert False in in_library


def test_the_server_refuses_what_is_above_the_total(
    open_store: Callable[[], PostgresStore],
) -> None:
    """The library stays below it by its margin; the server allows no more than the total."""
    curves = opened_curves(Fraction(2), Fraction(1, 10**6))
    allowed = math.log((curves.total[1] - curves.aside) / DELTA_UNITS)
    ends = curves.adds((0, 0), Event.read("zcdp(1/1000)"))

    def scaled(share: int) -> State:
        return (0, 0, 1, *(number * share // 10**9 for number in ends[3:]))

    def phi_is_above(share: int) -> bool:
        return curves.log_phi(scaled(share)) > allowed

    last = least_whole(phi_is_above, 0, 10**13) - 1  # within 1e-9 of the total
    store = open_store()
    for share, expected in ((last - last // 10**5, True), (last + last // 10**5, False)):
        values = (curves.terms, list(scaled(share)))
        (row,) = store.database.reading(lambda ask, v=values: list(ask("SELECT fits(?, ?)", v)))
        assert row == (expected,)
    assert not curves.fits(scaled(last))  # by its margin
