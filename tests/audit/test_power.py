"""A verdict says "ok" only if half the noise would have been detected."""

import dataclasses

import pytest

from audit.subjects import SUBJECTS
from sfumato.audit import Finding
from sfumato.audit.findings import examine
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed, override


@pytest.mark.parametrize(
    ("claim", "exact", "fault", "verdict"),
    [
        (PureDP(1), 1.0, None, "ok"),
        (PureDP(1), 0.5, None, "ok"),
        (PureDP(1), 0.3, None, "no power"),
        (PureDP(1), 0.0, None, "no power"),
        (PureDP(1), None, None, "no power"),
        (PureDP(1), None, 2.0, "ok"),
        (PureDP(1), None, 4.0, "no power"),
        (ZCDP(1), None, 4.0, "ok"),
        (ZCDP(1), 0.2, None, "ok"),
        (ZCDP(1), None, 16.0, "no power"),
        (PureDP(1), 1.1, None, "EXCEEDS"),
        (PureDP(1), "unbounded", None, "EXCEEDS"),
        (PureDP(1), "refused", None, "REFUSED"),
    ],
)
def test_a_verdict_needs_power(claim, exact, fault, verdict):
    """Half the noise must be detected: twice the epsilon, four times the rho."""
    found = Finding("subject", Unit(), claim, exact, 0.0, True, 0.0, fault)
    assert found.verdict == verdict
    assert found.ok == (verdict == "ok")
    assert found.failed == (verdict in ("EXCEEDS", "REFUSED"))


def test_power_does_not_depend_on_luck():
    """The faults that a row could have detected are the same in every run."""
    subject = next(s for s in SUBJECTS if s.name == "Laplace report, half a side apart")
    few = dataclasses.replace(subject, runs=200)
    assert len({examine(few).fault for _ in range(3)}) == 1


@pytest.mark.parametrize(
    ("name", "times", "caught"),
    [
        ("PrivTree", 4, 3.6),
        ("PrivTree", 2, 1.8),
        ("PrivTree in blocks", 2, 1.6),
        ("Quartiles, tree of counts", 2, 2.0),
        ("Publisher, table to release", 2, 2.0),
    ],
)
def test_faults_that_samples_miss_are_caught(name, times, caught):
    """A quarter of PrivTree's noise and half that of a tree of counts passed in version 0.1."""
    subject = next(s for s in SUBJECTS if s.name == name)
    with override(PublicSeed(name)):
        found = examine(dataclasses.replace(subject, mechanism=subject.weaker(times), runs=60))
    assert found.verdict == "EXCEEDS"
    assert found.exact > 0.99 * caught
