"""The previews of a plan are a tuple that also says what was picked."""

import pickle

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
    assert str(found) == "\n".join(map(str, found))
    one = sf.preview(TENS[0], domain=DOMAIN, unit=sf.Unit(), epsilon=1, delta="1e-6")
    assert isinstance(one, Preview)
