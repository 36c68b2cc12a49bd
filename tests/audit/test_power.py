"""A verdict says "ok" only if half the noise would have been detected."""

import dataclasses

import pytest

from sfumato.audit import Finding
from sfumato.audit.findings import examine
from sfumato.audit.subjects import SUBJECTS
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


def test_a_fault_that_few_runs_miss_is_never_called_ok():
    """Sixty runs miss a quarter of PrivTree's noise, and half the noise of a tree of counts."""
    for name, times in (("PrivTree", 4), ("Quartiles, tree of counts", 2)):
        subject = next(s for s in SUBJECTS if s.name == name)
        faulty = dataclasses.replace(subject, mechanism=subject.weaker(times), runs=60)
        with override(PublicSeed(name)):
            assert not examine(faulty).ok
