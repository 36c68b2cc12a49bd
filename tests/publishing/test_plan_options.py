"""What a plan asks of its questions is read by place, by question or by name."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.publishing.plan import read_accuracies, read_weights

AGE = sf.Histogram("age")
HOUR = sf.Histogram("hour", heading="Hours of the day")
COARSE = sf.Histogram("age", bins=5)
TWO = [AGE, HOUR]
TWENTY = sf.Within(20)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (20, (TWENTY, TWENTY)),
        ("20", (TWENTY, TWENTY)),
        (Fraction(20), (TWENTY, TWENTY)),
        (TWENTY, (TWENTY, TWENTY)),
        ([20, None], (TWENTY, None)),
        ({AGE: 20}, (TWENTY, None)),
        ({"Histogram of hour": 20}, (None, TWENTY)),
        ({"Hours of the day": TWENTY, "Histogram of age": 30}, (sf.Within(30), TWENTY)),
    ],
)
def test_accuracies_are_read(given, found) -> None:
    assert read_accuracies(given, TWO) == found
    assert sf.Plan(TWO, accuracy=given).accuracies == found


def test_the_same_question_twice_has_one_accuracy():
    assert read_accuracies({AGE: 20}, [AGE, HOUR, AGE]) == (TWENTY, None, TWENTY)
    assert read_accuracies({"Histogram of age": 20}, [AGE, AGE]) == (TWENTY, TWENTY)


def test_weights_are_read():
    assert read_weights({AGE: "0.5"}, TWO) == (Fraction(1, 2), 1)
    assert read_weights([3, None], TWO) == (3, 1)
    assert sf.Plan(TWO).weighed == (1, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"accuracy": [20]}, "1 accuracies for 2 questions"),
        ({"accuracy": {"Histogram of aeg": 20}}, "did you mean 'Histogram of age'"),
        ({"accuracy": {COARSE: 20}}, "the plan does not ask it"),
        ({"accuracy": {3: 20}}, "no question has that name"),
        ({"accuracy": {}}, "asks nothing"),
        ({"accuracy": [None, None]}, "asks nothing"),
        ({"accuracy": 0}, "above 0"),
        ({"accuracy": "many"}, "not a finite number"),
        ({"accuracy": [20, object()]}, "not a finite number"),
        ({"weights": 3}, "a list or a dict"),
        ({"weights": "31"}, "a list or a dict"),
        ({"weights": [1, 0]}, "above 0"),
        ({"minimise": "abs"}, "did you mean 'absolute'"),
        ({"minimise": 2}, "it is not a word"),
        ({"noise": "gausian"}, "did you mean 'gaussian'"),
        ({"rows": -1}, "whole number"),
        ({"rows": True}, "whole number"),
        ({"shares": [1, 1], "accuracy": 20}, "shares and accuracy"),
        ({"shares": [1, 1], "weights": [1, 2]}, "shares and weights"),
        ({"shares": [1, 1], "minimise": "squared"}, "shares and minimise"),
    ],
)
def test_what_makes_no_sense_is_refused(words, said: str) -> None:
    with pytest.raises(sf.UsageError, match=said):
        sf.Plan(TWO, **words)


def test_a_name_of_two_questions_is_refused():
    with pytest.raises(sf.UsageError, match="2 questions have that name"):
        sf.Plan([AGE, COARSE], accuracy={"Histogram of age": 20})


def test_none_is_the_same_as_nothing():
    plan = sf.Plan(TWO, accuracy=None, weights=None, minimise=None, noise=None, rows=None)
    assert plan == sf.Plan(TWO)
    assert to_bytes(plan) == to_bytes(sf.Plan(TWO))


def test_a_plan_without_options_is_stored_as_it_was():
    stored = b'{"questions":[{"type":"histogram","axes":["age"]}],"shares":null}'
    assert to_bytes(sf.Plan([AGE])) == stored


def test_a_plan_travels():
    for words in ({"accuracy": {AGE: 20}}, {"weights": [1, 3], "minimise": "squared", "rows": 9}):
        plan = sf.Plan([AGE, COARSE], noise="gaussian", **words)
        assert from_bytes(to_bytes(plan), sf.Plan) == plan
