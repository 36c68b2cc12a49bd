"""The previews of a plan are a tuple that also says what was picked."""

import pickle

import numpy as np

import sfumato as sf
from sfumato.answers.preview import Preview

DOMAIN = sf.Domain({f"x{i}": sf.Interval(0, 10, step=1) for i in range(20)})
TENS = [sf.Histogram(f"x{i}") for i in range(20)]


def test_previews_are_a_tuple_and_say_what_was_picked():
    found = sf.preview(TENS, domain=DOMAIN, unit=sf.Unit(), epsilon=1, delta="1e-6")
    assert isinstance(found, tuple)
    assert all(isinstance(one, Preview) for one in found)
    text = str(found)
    assert text.startswith("Gaussian noise, because")
    assert text.count("within +-40") == 20
    assert "<p>Gaussian noise" in found._repr_html_()


def test_previews_travel():
    found = sf.preview(TENS, domain=DOMAIN, unit=sf.Unit(), epsilon=1, delta="1e-6")
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.choice) == (found, found.choice)


def test_a_plan_without_a_choice_shows_its_previews_alone():
    found = sf.preview(TENS, domain=DOMAIN, unit=sf.Unit(), epsilon=1)
    assert found.choice is None
    text = str(found)
    assert text.startswith("Histogram of x0:\n  adds discrete Laplace noise of scale 20 to each ")
    assert text.count("anyone 1% sure") == text.count("any one person") == 1
    assert "Each of the 20 answers has epsilon = 0.05 and protects any one person" in text
    assert str(sf.preview(TENS[:1], domain=DOMAIN, unit=sf.Unit(), epsilon=1)) == str(
        sf.preview(TENS[0], domain=DOMAIN, unit=sf.Unit(), epsilon=1)
    )
    one = sf.preview(TENS[0], domain=DOMAIN, unit=sf.Unit(), epsilon=1, delta="1e-6")
    assert isinstance(one, Preview)


def test_an_account_in_rho_is_charged_its_own_least_cost_whatever_delta_is_given():
    ages = sf.source(np.array([[31.0]]), sf.Domain(age=sf.Interval(0, 100)), name="ages")
    plan = sf.Plan([sf.Histogram("age", bins=50), sf.Histogram("age", bins=40)], accuracy=[10, 12])
    costs = []
    for delta in (0, "1e-6"):
        publisher = sf.Publisher(ages, budget=sf.ZCDP("50"))
        publisher.release(plan, delta=delta)
        costs.append(publisher.account.spent)
    assert costs[0] == costs[1]
