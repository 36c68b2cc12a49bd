"""No subject exceeds its claim, and every broken mechanism is found or refused."""

import dataclasses
import os

import msgspec
import pytest

from audit.subjects import LONG, SUBJECTS, clusters, partitions, selections
from sfumato.audit import Finding, audit, findings, sentence, subjects
from sfumato.audit.findings import QUICK, Effort, examine
from sfumato.audit.subjects import Subject
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.errors import UsageError
from sfumato.privacy.measures import ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed, override
from support.broken import BROKEN, CLAIM, SOUND, UNIVERSE

BY_HAND = [
    subject for module in (partitions, selections, clusters) for subject in module.subjects()
]
SMALLEST = Effort(others=0, alphas=(1.5, 8.0), runs=1)
VERDICT = {"exceeds": float, "unreachable": "unbounded", "not additive": "refused"}


def subject_of(example, runs=400):
    """A subject for a sound or broken mechanism of ``support.broken``."""
    return Subject(example.name, example.unit, CLAIM, example.mechanism, UNIVERSE, runs=runs)


def name_of(subject):
    return f"{subject.name}, {subject.claim}, {subject.unit}"


def once(given):
    """Mark all but the first unit of a name and a kind of claim as deep, and what takes long."""
    seen = set()
    for subject in given:
        kind = (subject.name, type(subject.claim))
        is_deep = kind in seen or subject.name in LONG
        yield pytest.param(subject, marks=[pytest.mark.deep] if is_deep else [])
        seen.add(kind)


def check_subject(subject, effort):
    """Every row has an exact figure, or samples with the power to detect half the noise."""
    if subject.exact is not None:
        # The exact figure decides, so that the outputs need few runs.
        subject = dataclasses.replace(subject, runs=40)
    found = examine(subject, effort)
    assert found.verdict == "ok", found.row()
    assert found.sampled <= found.claimed
    if subject.exact is not None:
        assert found.exact <= found.claimed * (1 + 1e-9)
    else:
        assert (found.exact, found.fault) == (None, 2.0)


@pytest.mark.parametrize("subject", list(once(subjects.library())), ids=name_of)
def test_no_subject_exceeds_its_claim_and_each_would_have_shown_a_fault(subject):
    """On the smallest data sets; the next test has rows of others beside them."""
    check_subject(subject, SMALLEST)


@pytest.mark.deep
@pytest.mark.parametrize("subject", subjects.library(), ids=name_of)
def test_no_subject_exceeds_its_claim_beside_rows_of_others(subject):
    check_subject(subject, QUICK)


@pytest.mark.parametrize("subject", list(once(BY_HAND)), ids=name_of)
def test_mechanisms_that_decide_spend_what_they_claim_and_show_it(subject):
    """On data made for each: where one person tips a test or a choice."""
    found = examine(dataclasses.replace(subject, runs=40))
    assert found.verdict == "ok", found.row()
    assert subject.least * found.claimed <= found.exact <= found.claimed * (1 + 1e-9)


@pytest.mark.parametrize("sound", SOUND, ids=str)
def test_sound_mechanisms_pass(sound):
    found = examine(subject_of(sound))
    assert found.ok
    assert found.exact == pytest.approx(found.claimed)


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_broken_mechanisms_do_not(broken):
    found = examine(subject_of(broken))
    assert not found.ok
    expected = VERDICT[broken.detector]
    assert isinstance(found.exact, float) if expected is float else found.exact == expected
    assert found.row()[5] == (
        "REFUSED" if expected == "refused" and not found.exceeds else "EXCEEDS"
    )
    assert broken.name in sentence([found])


def test_a_claim_with_delta_is_left_to_the_sampled_audit():
    at_delta = {"claim": ApproxDP("2", "1e-3"), "exact": None}
    sound = dataclasses.replace(subject_of(SOUND[0], runs=2000), **at_delta)
    found = examine(sound)
    assert (found.exact, found.failed, found.verdict) == (None, False, "no power")
    with override(PublicSeed("half the noise")):
        powered = examine(dataclasses.replace(sound, weaker=lambda times: BROKEN[0].mechanism))
    assert (powered.verdict, powered.fault) == ("ok", 2.0)
    broken = dataclasses.replace(subject_of(BROKEN[0], runs=4000), **at_delta)
    assert not examine(broken).ok


@pytest.mark.parametrize("exact", [0.5, "unbounded", "refused", None])
def test_a_finding_is_the_same_after_encoding_and_decoding(exact):
    found = Finding(
        "Histogram", Unit(rows_per_person=2), PureDP("0.5"), exact, 0.25, exact == 0.5, 0.1
    )
    assert from_bytes(to_bytes([found]), list[Finding]) == [found]
    with pytest.raises(msgspec.ValidationError):
        from_bytes(b'{"subject": "x"}', Finding)


def test_work_can_be_shared_between_processes():
    for processes in (1, 2):
        with findings._workers(processes) as map_over:
            assert list(map_over(divmod, [7, 9], [2, 3])) == [(3, 1), (3, 0)]


def test_subjects_are_chosen_by_name_and_progress_is_reported(monkeypatch):
    few = tuple(
        dataclasses.replace(subject, runs=300)
        for subject in SUBJECTS
        if subject.name == "Histogram"
    )
    monkeypatch.setattr(subjects, "library", lambda: few)
    reported = []
    found = audit(progress=lambda *args: reported.append(args), only="HISTO")
    assert len(found) == len(few)
    assert reported[0] == (0, len(few), "Histogram")
    assert reported[-1] == (len(few), len(few), "done")
    assert sentence(found) == f"None of {len(few)} subjects was found to exceed its claim."
    with pytest.raises(UsageError, match="did you mean 'Histogram'"):
        audit(only="Histogrm")


@pytest.mark.deep
def test_the_deep_audit(evidence):
    found = audit(deep=True, processes=os.cpu_count() or 1)
    columns = [(*f.row()[:3], f.exact, f.sampled, f.verdict, f.fault) for f in found]
    heads = ("subject", "unit", "claim", "exact", "sampled", "verdict", "fault")
    evidence("audit-deep", [dict(zip(heads, row, strict=True)) for row in columns])
    assert all(f.ok for f in found)
