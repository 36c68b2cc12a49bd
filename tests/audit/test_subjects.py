"""Every question has subjects of the audit, and every subject an attack that can judge it."""

import dataclasses
from pathlib import Path

import pytest

from audit.subjects import LONG
from sfumato.answers.registry import questions, tag_of
from sfumato.audit import subjects
from sfumato.audit.findings import Effort, examine
from sfumato.audit.subjects import machines
from sfumato.privacy.measures import ZCDP
from sfumato.random import PublicSeed, override
from support.audit_coverage import reached

COVERED = Path(__file__).parent / "subjects" / "covered.txt"
"""Each question with the options and limits that choose its mechanism, and what the audit must
reach of it: laws of noise, choices, and promises by cost and relation."""
AUDITED = subjects.library()
SMALLEST = Effort(others=0, alphas=(1.5, 8.0), runs=1)


def name_of(subject):
    return f"{subject.name}, {subject.claim}, {subject.unit}"


def test_every_question_is_audited():
    """A new question needs examples, which are then audited."""
    audited = {subject.name.split(":")[0] for subject in subjects.every()}
    assert {tag_of(kind) for kind in questions()} <= audited
    assert {subject.unit.neighbours for subject in subjects.every()} == {"add-remove", "replace"}


def test_the_command_covers_every_law_option_and_promise():
    """More may be covered; what is listed must stay."""
    found = reached(subjects.every())
    for line in COVERED.read_text(encoding="utf-8").splitlines():
        asked, _, laws = line.partition(" | ")
        missing = set(laws.split(", ")) - found.get(asked, set())
        assert not missing, f"the audit does not reach {missing} of {asked}"


def first_of_each_name():
    """A subject of each name and kind of claim; in the quick tests, with its first kind alone."""
    known = {}
    for subject in AUDITED:
        known.setdefault((subject.name, type(subject.claim)), subject)
    names = set(LONG)
    for subject in known.values():
        yield pytest.param(subject, marks=[pytest.mark.deep] if subject.name in names else [])
        names.add(subject.name)


@pytest.mark.parametrize("subject", list(first_of_each_name()), ids=name_of)
def test_the_quick_audit_catches_every_subject_with_half_its_noise(subject):
    """A quarter of the noise, where a subject spends less than half of what it may.

    Reports of devices also have a quarter of it, so that few runs are enough.
    """
    is_exact = subject.exact is not None
    spends_half = subject.least >= 0.5 or isinstance(subject.claim, ZCDP)
    faulty = dataclasses.replace(
        subject,
        mechanism=subject.weaker(2 if is_exact and spends_half else 4),
        # Few pairs are enough to be caught by.
        pairs=subject.pairs[:8],
        runs=40 if is_exact else 600,
    )
    with override(PublicSeed(subject.name)):
        found = examine(faulty, SMALLEST)
    assert found.verdict == "EXCEEDS", found.row()


def test_every_subject_has_an_exact_figure_or_is_a_report_of_one_device():
    reports = {subject.name for subject in machines.device_subjects()}
    for subject in AUDITED:
        assert subject.exact is not None or subject.name in reports, name_of(subject)
