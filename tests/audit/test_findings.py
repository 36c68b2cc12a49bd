"""Every subject spends what it claims and not more; every broken twin is found out or refused."""

import dataclasses

import msgspec
import pytest

from sfumato.answers.codec import from_bytes, to_bytes
from sfumato.answers.registry import questions
from sfumato.audit import Finding, audit, findings, sentence, subjects
from sfumato.audit.findings import examine
from sfumato.audit.likelihoods import renyi_loss
from sfumato.audit.runs import Scripted, count, neighbours
from sfumato.audit.subjects import SUBJECTS, Subject
from sfumato.audit.subjects.subject import FIRST_DRAWS, ON_LINE
from sfumato.errors import UsageError
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed, override
from support.broken import BROKEN, CLAIM, DOMAIN, QUESTION, SOUND, UNIVERSE

VERDICT = {"exceeds": float, "unreachable": "unbounded", "not additive": "refused"}


def subject_of(twin, runs=400):
    return Subject(
        twin.name, twin.unit, CLAIM, twin.mechanism, UNIVERSE, (0, *FIRST_DRAWS), runs=runs
    )


def name_of(subject):
    return f"{subject.name}, {subject.claim}, {subject.unit}"


@pytest.mark.parametrize("subject", SUBJECTS, ids=name_of)
def test_every_subject_spends_what_it_claims(subject):
    runs = 200 if subject.law is None else 40  # selections are judged by their law
    found = examine(dataclasses.replace(subject, runs=runs, weaker=None))
    assert not found.failed
    assert found.verdict == ("no power" if found.exact is None else "ok")
    assert found.sampled <= found.claimed
    if subject.law is not None:
        assert 0.45 * found.claimed <= found.exact <= found.claimed * (1 + 1e-9)
    elif subject.universe:
        assert subject.least * found.claimed <= found.exact <= found.claimed * (1 + 1e-9)
    else:
        assert found.exact is None


def test_high_orders_where_the_first_draw_decides():
    """There the integrand lies far out in the tail of the first draw."""
    (subject,) = (
        s
        for s in SUBJECTS
        if s.name == "Uniform grid, noisy rows" and s.unit == Unit() and isinstance(s.claim, ZCDP)
    )
    rho = renyi_loss(
        subject.mechanism, neighbours(ON_LINE[:1], Unit(), others=0), (1.01, 64.0), decides=True
    ).loss
    assert 0.98 * 0.5 <= rho <= 0.5 * (1 + 1e-9)


@pytest.mark.parametrize("twin", SOUND, ids=str)
def test_sound_mechanisms_pass(twin):
    found = examine(subject_of(twin))
    assert found.ok
    assert found.exact == pytest.approx(found.claimed)


@pytest.mark.parametrize("twin", BROKEN, ids=str)
def test_broken_mechanisms_do_not(twin):
    found = examine(subject_of(twin))
    assert not found.ok
    expected = VERDICT[twin.detector]
    assert isinstance(found.exact, float) if expected is float else found.exact == expected
    assert found.row()[5] == (
        "REFUSED" if expected == "refused" and not found.exceeds else "EXCEEDS"
    )
    assert twin.name in sentence([found])


def test_a_promise_with_delta_is_left_to_the_sampled_audit():
    sound = dataclasses.replace(subject_of(SOUND[0], runs=2000), claim=ApproxDP("2", "1e-3"))
    found = examine(sound)
    assert (found.exact, found.failed, found.verdict) == (None, False, "no power")
    with override(PublicSeed("half the noise")):
        powered = examine(dataclasses.replace(sound, weaker=lambda times: BROKEN[0].mechanism))
    assert (powered.verdict, powered.fault) == ("ok", 2.0)
    broken = dataclasses.replace(subject_of(BROKEN[0], runs=4000), claim=ApproxDP("2", "1e-3"))
    assert not examine(broken).ok


def test_every_question_is_audited():
    """A new question joins the registry: then it has a room of the audit, or examples, which are audited."""
    for kind in questions():
        assert kind in subjects.asked() or kind.examples, (
            f"give {kind.__name__} examples, or subjects in sfumato.audit.subjects"
        )
    assert {kind.__name__ for kind in subjects.asked()} == {
        *(
            "Mean",
            "Sum",
            "Variance",
            "Histogram",
            "Quantiles",
            "KMeans",
            "UniformPartitioner",
            "AdaptiveGridPartitioner",
            "BinaryPartitioner",
        ),
        *(
            "MedianPartitioner",
            "MultiQuantilePartitioner",
            "PrivTreePartitioner",
            "AutoPartitioner",
        ),
    }
    assert {subject.unit.neighbours for subject in SUBJECTS} == {"add-remove", "replace"}


def test_every_subject_without_an_exact_figure_is_attacked_with_less_noise_too():
    """A subject has one of the two, or its row could never be ok."""
    for subject in SUBJECTS:
        if not subject.universe or isinstance(subject.claim, ApproxDP):
            assert subject.weaker is not None, name_of(subject)
            assert subject.weaker(2) is not subject.mechanism


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
    """Half the noise must be seen: twice the epsilon, four times the rho."""
    found = Finding("subject", Unit(), claim, exact, 0.0, True, 0.0, fault)
    assert found.verdict == verdict
    assert found.ok == (verdict == "ok")
    assert found.failed == (verdict in ("EXCEEDS", "REFUSED"))


def test_the_blind_rows_of_the_issue():
    """A quarter of PrivTree's noise passes a quick run, and half the noise of a tree of counts: no verdict of theirs is ok."""
    for name in ("PrivTree", "Quartiles, tree of counts"):
        subject = next(s for s in SUBJECTS if s.name == name)
        quarter = dataclasses.replace(
            subject, mechanism=subject.weaker(4 if name == "PrivTree" else 2), runs=60
        )
        with override(PublicSeed(name)):
            assert not examine(quarter).ok


@pytest.mark.parametrize("exact", [0.5, "unbounded", "refused", None])
def test_a_finding_survives_the_journey(exact):
    found = Finding(
        "Histogram", Unit(rows_per_person=2), PureDP("0.5"), exact, 0.25, exact == 0.5, 0.1
    )
    assert from_bytes(to_bytes([found]), list[Finding]) == [found]
    with pytest.raises(msgspec.ValidationError):
        from_bytes(b'{"subject": "x"}', Finding)


def test_work_can_be_shared_between_processes():
    for processes in (1, 2):
        with findings._workers(processes) as run:
            assert list(run(divmod, [7, 9], [2, 3])) == [(3, 1), (3, 0)]


def test_choosing_subjects_and_telling_progress(monkeypatch):
    few = tuple(
        dataclasses.replace(subject, runs=300)
        for subject in SUBJECTS
        if subject.name == "Histogram"
    )
    monkeypatch.setattr(subjects, "SUBJECTS", few)
    told = []
    found = audit(progress=lambda *args: told.append(args), only="HISTO")
    assert len(found) == len(few)
    assert told[0] == (0, len(few), "Histogram")
    assert told[-1] == (len(few), len(few), "done")
    assert sentence(found) == f"None of {len(few)} subjects was seen to spend more than it claims."
    with pytest.raises(UsageError, match="did you mean 'Histogram'"):
        audit(only="Histogrm")


def test_a_release_under_a_script_says_that_it_is_not_private():
    release = QUESTION.answer(
        count(((0.5,),), QUESTION.needs(DOMAIN).lattice), Unit(), CLAIM, Scripted()
    )
    assert not release.guarantee.private
    assert "NOT PRIVATE" in repr(release)
    with pytest.raises(AttributeError):
        Scripted().private = True


@pytest.mark.deep
def test_the_deep_audit(evidence):
    found = audit(deep=True)
    columns = [(*f.row()[:3], f.exact, f.sampled, f.verdict, f.fault) for f in found]
    heads = ("subject", "unit", "claim", "exact", "sampled", "verdict", "fault")
    evidence("audit-deep", [dict(zip(heads, row, strict=True)) for row in columns])
    assert not any(f.failed for f in found)
