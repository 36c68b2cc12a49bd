"""The promise is the same wherever it is printed."""

import pytest

import sfumato.partition as rooms
from sfumato.counters import Counter
from sfumato.histogram import Histogram
from sfumato.privacy.guarantee import Guarantee, assumptions_of
from sfumato.privacy.measures import ZCDP, ApproxDP, MetricDP, PureDP
from sfumato.privacy.unit import Unit

PARTITIONERS = [getattr(rooms, name) for name in rooms.__all__ if name.endswith("Partitioner")]
QUESTIONS = [Histogram, Counter, *PARTITIONERS]
PROOF = Histogram.proof


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda kind: kind.__name__)
def test_the_docstring_holds_the_proof(question):
    for line in str(question.proof).splitlines():
        assert words(line) in words(question.__doc__)


@pytest.mark.parametrize("measure", [PureDP(1), ApproxDP(1, "1e-6"), ZCDP(1), MetricDP(1)])
def test_a_sentence_for_every_measure(measure):
    guarantee = Guarantee(measure, Unit(), "noise", PROOF)
    assert str(measure) in guarantee.sentence()
    assert str(Unit()) in guarantee.sentence()
    assert all(line in str(guarantee) for line in str(PROOF).splitlines())


def test_a_public_seed_promises_nothing():
    guarantee = Guarantee(PureDP(1), Unit(), "noise", PROOF, private=False)
    assert guarantee.sentence().startswith("NOT PRIVATE")
    assert "epsilon" not in guarantee.sentence()


def test_assumptions_name_who_bounds_rows():
    assert "rider" in assumptions_of(Unit(rows_per_person=3, person="rider"))[0]
    assert "one person" in assumptions_of(Unit())[0]
    assert "nothing enforces" in assumptions_of(Unit(rows_per_person=3))[0]


@pytest.mark.parametrize(
    "proof", [Histogram.keys_proof, Histogram.records_proof], ids=["keys", "records"]
)
def test_the_docstring_of_a_histogram_holds_its_other_proofs(proof):
    for line in str(proof).splitlines():
        assert words(line) in words(Histogram.__doc__)
