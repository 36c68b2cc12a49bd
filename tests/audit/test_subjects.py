"""Every question has subjects of the audit, and every subject an attack that can judge it."""

from sfumato.answers.registry import questions
from sfumato.audit import subjects
from sfumato.audit.subjects import SUBJECTS
from sfumato.privacy.measures import ApproxDP


def name_of(subject):
    return f"{subject.name}, {subject.claim}, {subject.unit}"


def test_every_question_is_audited():
    """A new question needs subjects in the audit, or examples, which are then audited."""
    for kind in questions():
        assert kind in subjects.asked() or kind.examples, (
            f"give {kind.__name__} examples, or subjects in sfumato.audit.subjects"
        )
    assert {kind.__name__ for kind in subjects.asked()} == {
        "Mean",
        "Sum",
        "Variance",
        "Persons",
        "Histogram",
        "Quantiles",
        "KMeans",
        "UniformPartitioner",
        "AdaptiveGridPartitioner",
        "BinaryPartitioner",
        "MedianPartitioner",
        "MultiQuantilePartitioner",
        "PrivTreePartitioner",
        "AutoPartitioner",
    }
    assert {subject.unit.neighbours for subject in SUBJECTS} == {"add-remove", "replace"}


def test_every_subject_without_an_exact_figure_is_attacked_with_less_noise_too():
    """A subject has one of the two, or its row could never be ok."""
    for subject in SUBJECTS:
        if not subject.universe or isinstance(subject.claim, ApproxDP):
            assert subject.weaker is not None, name_of(subject)
            assert subject.weaker(2) is not subject.mechanism
