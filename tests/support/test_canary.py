"""The search finds a canary wherever it is planted."""

import logging
import pickle
import warnings

import numpy as np
import pytest

from support.canary import forms, overheard, sightings

CANARY = 8675309


class Leaky:
    def __init__(self, held):
        self.held = held


class Talkative(Leaky):
    def __repr__(self):
        return f"<{self.held:,}>"


def test_objects():
    assert not sightings(CANARY, {"a": 1}, np.arange(5), None)
    assert {seen.where for seen in sightings(CANARY, Leaky(CANARY))} == {"pickle of Leaky"}
    assert "repr of Talkative" in {seen.where for seen in sightings(CANARY, Talkative(CANARY))}
    assert sightings(CANARY, [float(CANARY)])
    assert sightings("canary-ø", {"name": "x canary-ø y"})
    assert sightings(0.8675309, np.array([1.0, 0.8675309]))


def log():
    logging.getLogger("sfumato.anything").debug("held %d", CANARY)


def warn():
    warnings.warn(f"held {CANARY}", stacklevel=1)


def behind():
    try:
        raise ValueError(CANARY)
    except ValueError:
        raise KeyError("refused") from None


def noted():
    error = KeyError("refused")
    error.add_note(f"of {CANARY}")
    raise error


@pytest.mark.parametrize(
    "call", [log, warn, behind, noted, lambda: print(CANARY), lambda: Leaky(CANARY)]
)
def test_calls(call):
    assert overheard(CANARY, call)
    assert not overheard(CANARY, lambda: None)


def test_forms_as_stored():
    stored = pickle.dumps(np.array([CANARY]))
    assert any(form in stored for form in forms(CANARY))
    assert any(form in pickle.dumps(0.125) for form in forms(0.125))
