"""A receipt says what was charged, as a measure too, and what was picked for a plan."""

import msgspec
import pytest

import sfumato as sf
from sfumato.answers.receipt import Receipt
from sfumato.basics.structs import to_bytes

RECEIPT = Receipt("a", "k", "d", 3, "h", "2026-03-01T09:15:00+00:00", "rho = 1", "1 of 1", "s", "0")


@pytest.mark.parametrize(
    ("charged", "cost"),
    [
        ("epsilon = 0.5", sf.PureDP("0.5")),
        ("epsilon = 0.5, delta = 0.000001", sf.ApproxDP("0.5", "1e-6")),
        ("rho = 0.024355970359", sf.ZCDP("0.024355970359")),
        ("epsilon = 0", None),
        ("nothing", None),
        ("epsilon = 1.2.3", None),
    ],
)
def test_what_was_charged_is_read_as_a_measure(charged, cost) -> None:
    assert msgspec.structs.replace(RECEIPT, charged=charged).cost == cost


def test_what_was_picked_is_absent_unless_something_was():
    assert b"picked" not in to_bytes(RECEIPT)
    assert "Picked" not in dict(RECEIPT.lines())
    picked = msgspec.structs.replace(RECEIPT, picked="Gaussian noise.")
    assert dict(picked.lines())["Picked"] == "Gaussian noise."
