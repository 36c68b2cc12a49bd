"""The promise is the same wherever it is printed."""

import re

import pytest

import sfumato.streaming
from sfumato.answers.registry import questions
from sfumato.local import BPM, MultivariateLaplace
from sfumato.privacy.guarantee import Guarantee, Proof, assumptions_of, fill_docstring
from sfumato.privacy.measures import ZCDP, ApproxDP, MetricDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.counters import Counter
from sfumato.questions.histogram import Histogram
from sfumato.streaming.aggregator import Aggregator

PROOF = Histogram.proof
WITH_PROOF = [*questions(), Counter, BPM, MultivariateLaplace]
PROOFS = {
    f"{kind.__name__}.{name}": (kind, proof)
    for kind in WITH_PROOF
    for name in dir(kind)
    if isinstance(proof := getattr(kind, name), Proof)
}
AGGREGATORS = [
    kind
    for kind in vars(sfumato.streaming).values()
    if isinstance(kind, type) and issubclass(kind, Aggregator) and kind is not Aggregator
]


def on_one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize(("kind", "proof"), PROOFS.values(), ids=PROOFS)
def test_the_docstring_holds_the_proof(kind, proof):
    for line in str(proof).splitlines():
        assert on_one_line(line) in on_one_line(kind.__doc__)


def test_every_class_with_a_proof_is_tested():
    of_histograms = {"keys_proof", "keys_of_persons_proof", "persons_proof", "ranges_proof"}
    of_histograms |= {"records_proof", "bounded_proof"}
    of_means = {"keys_proof", "limits_proof", "persons_proof", "persons_keys_proof"}
    others = {"Tables.residuals_proof", "Tables.norm_proof"}
    others |= {f"Histogram.{name}" for name in of_histograms}
    others.add("UniformPartitioner.proof_in_steps")
    others |= {f"{mean}.{name}" for mean in ("Mean", "Sum", "Variance") for name in of_means}
    assert others < PROOFS.keys()
    assert len(PROOFS) == len(WITH_PROOF) + len(others)


@pytest.mark.parametrize("kind", [*WITH_PROOF, *AGGREGATORS], ids=lambda kind: kind.__name__)
def test_no_place_in_a_docstring_is_left_open(kind):
    assert not re.search(r"^ *\{\w*\}$", kind.__doc__, flags=re.MULTILINE)
    assert "Not covered: " in kind.__doc__


def test_a_place_is_filled_by_the_attribute_that_it_names():
    @fill_docstring
    class Asked:
        """What is asked.

        {proof}
        {other}
        Text with {proof} in it.
        """

        proof = Proof("one row", "it is so " * 20, "nothing", "none")

    lines = Asked.__doc__.splitlines()
    assert lines[2] == "        Sensitivity: one row"
    assert max(map(len, lines)) <= 100
    assert all(line.startswith("        ") for line in lines[2:])
    assert lines[-3:-1] == ["        {other}", "        Text with {proof} in it."]


def test_a_class_without_a_docstring_keeps_none():
    class Silent:
        proof = PROOF

    assert fill_docstring(Silent).__doc__ is None


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
