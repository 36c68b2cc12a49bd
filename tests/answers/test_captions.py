"""Words for people change what is shown, and nothing else."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.captions import Captions
from sfumato.answers.registry import question_type, questions
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.domain.lattice import GridAxis, LabelAxis, Lattice
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from support import every_kind

WORDS = {
    "heading": "What <people> earn",
    "measured_in": "euros",
    "label_names": {"WN": "Southwest", "=1+1": "=2"},
}
ANSWERS = [*every_kind.QUESTIONS, "counter"]
NAMED = ("table", "tables", "mean", "means over persons", "quantiles", "counter")
"""The answers that have labels."""


def captioned(kind, **words):
    """A release of every kind under words for people."""
    release = every_kind.releases()[kind]
    return msgspec.structs.replace(release, captions=Captions(**(words or WORDS)))


@pytest.mark.parametrize("kind", questions(), ids=lambda kind: kind.__name__)
def test_every_question_carries_words_and_is_the_same_without_them(kind):
    for question in kind.examples:
        named = msgspec.structs.replace(question, **WORDS)
        assert named.captions == Captions(**WORDS)
        assert named.uncaptioned() == question
        assert to_bytes(named.uncaptioned()) == to_bytes(question)
        assert b"heading" not in to_bytes(question)
        assert from_bytes(to_bytes(named), question_type()) == named
        assert question.captions is None


@pytest.mark.parametrize("kind", [*questions(), sf.Counter], ids=lambda kind: kind.__name__)
def test_every_docstring_names_them(kind):
    assert "heading, measured_in, label_names" in kind.__doc__
    assert "UNSET" not in repr(sf.Counter(horizon=3))


@pytest.mark.parametrize("kind", every_kind.QUESTIONS)
def test_they_change_neither_cells_nor_price(kind):
    question, _ = every_kind.QUESTIONS[kind]
    named = msgspec.structs.replace(question, **WORDS)
    domain, unit = every_kind.DOMAIN, Unit(4, person="id")
    needs_delta = kind in ("keys", "bounded")
    cost = sf.ApproxDP("0.5", "1e-6") if needs_delta else PureDP("0.5")
    assert named.needs(domain) == question.needs(domain)
    assert named.title == question.title
    mine, theirs = (each.preview(domain, unit, cost) for each in (named, question))
    assert str(mine) == str(theirs)


@pytest.mark.parametrize("kind", ANSWERS)
def test_people_are_shown_them_everywhere_and_programs_keep_the_labels(kind, tmp_path):
    release = captioned(kind)
    plain = every_kind.releases()[kind]
    assert release.heading == WORDS["heading"]
    assert release.title == plain.title
    assert release.to_frame().equals(plain.to_frame())
    shown = release._repr_html_()
    assert "What &lt;people&gt; earn" in shown
    assert ("Southwest" in shown) == (kind in NAMED)
    frame = release.to_pandas()
    assert frame.attrs["heading"] == WORDS["heading"]
    assert set(plain.to_frame().column_names) <= set(frame.columns)
    assert ("carrier_name" in frame.columns) == (kind in NAMED)
    if kind in NAMED:
        pairs = set(zip(frame["carrier"], frame["carrier_name"], strict=True))
        assert pairs == {("WN", "Southwest"), ("AA", "AA"), ("=1+1", "=2"), ("else", "else")}


@pytest.mark.parametrize("kind", ANSWERS)
def test_named_for_people_once_is_named_for_good(kind):
    named = captioned(kind).for_people()
    assert named.for_people() == named
    assert named.heading == WORDS["heading"]
    assert np.array_equal(named.values, every_kind.releases()[kind].values, equal_nan=True)
    without = captioned(kind, label_names={"WN": "Southwest"}).for_people()
    assert without.heading == every_kind.releases()[kind].title


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("histogram", "year (euros)"),
        ("mean", "Mean of wage (euros)"),
        ("variance", "Variance of year (euros squared)"),
        ("partition", "wage (euros)"),
        ("clusters", "wage (euros)"),
    ],
)
def test_a_picture_shows_heading_and_units(kind, said):
    release = captioned(kind)
    ax = release.plot()
    texts = [ax.get_xlabel(), ax.get_ylabel(), *(one.get_text() for one in ax.get_yticklabels())]
    assert any(said in text for text in texts), texts
    assert ax.figure.get_suptitle() == WORDS["heading"]
    assert not every_kind.releases()[kind].plot().figure.get_suptitle()


def test_axes_of_the_user_get_no_title():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    captioned("histogram").plot(ax)
    assert not ax.figure.get_suptitle()
    assert ax.get_xlabel() == "year (euros)"


def test_a_partition_is_drawn_by_the_names_of_its_axes():
    ax = captioned("partition").plot(axes=["year", "wage"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("year (euros)", "wage (euros)")


# --- names ----------------------------------------------------------------------------------------

NUMBERS = GridAxis("delay", 0.0, 60.0, 6)
DAYS = GridAxis("day", 0.0, 60.0, 6, "day")
LABELS = LabelAxis("carrier", ("WN", "AA", 7, True))


def names(captions, **how):
    return captions.lattice(Lattice((NUMBERS, DAYS, LABELS)), **how).names


def test_a_unit_is_that_of_numbers_or_of_the_axis_that_is_named():
    assert names(Captions(measured_in="min")) == ("delay (min)", "day", "carrier")
    assert names(Captions(measured_in="min"), grouping=True) == ("delay", "day", "carrier")
    by_name = Captions(measured_in={"day": "UTC", "delay": "min"})
    assert (
        names(by_name) == names(by_name, grouping=True) == ("delay (min)", "day (UTC)", "carrier")
    )


def test_bins_beside_missing_values_and_fields_of_dates_are_named_too():
    domain = sf.Domain(delay=sf.Interval(0, 60, missing=True), month=sf.Month("day"))
    question = sf.Histogram(["delay", "month"], bins=6)
    lattice = Captions(measured_in="min", label_names={"January": "Jan"}).lattice(
        question.needs(domain).lattice
    )
    assert lattice.names == ("delay (min)", "month")
    assert lattice.axes[0].cell_names()[-1] == "missing"
    assert lattice.axes[1].cell_names()[:2] == ["Jan", "February"]


def test_two_labels_never_look_the_same():
    captions = Captions(label_names={"WN": "Airline", "7": "Airline", "True": "AA"})
    assert captions.labels(LABELS) == ("Airline (WN)", "AA", "Airline (7)", "AA (True)")


@pytest.mark.parametrize(
    ("words", "obstacle"),
    [
        ({"heading": ""}, None),
        ({"heading": None}, None),
        ({"heading": 5}, "a text that is not empty"),
        ({"heading": "a\nb"}, "a control character"),
        ({"heading": "x" * 201}, "longer than 200"),
        ({"measured_in": ["min"]}, "a text that is not empty"),
        ({"measured_in": {"x": 5}}, "a text that is not empty"),
        ({"label_names": "WN"}, "it is no mapping"),
        ({"label_names": {"WN": ""}}, "a text that is not empty"),
        ({"label_names": {10**5000: "large"}}, "an integer of 64 bits"),
        ({"label_names": {None: "none"}}, "an integer of 64 bits"),
        ({"heading": 10**5000}, "a text that is not empty"),
    ],
)
def test_what_is_no_public_text_is_refused(words, obstacle):
    if obstacle is None:
        assert sf.Histogram("x", **words).captions is None
        return
    with pytest.raises(sf.UsageError, match=obstacle):
        sf.Histogram("x", **words)


def test_labels_that_are_numbers_are_named_by_their_digits():
    assert sf.Histogram("x", label_names={1: "one"}).captions.label_names == {"1": "one"}


def test_a_saved_release_keeps_its_words(tmp_path):
    release = captioned("table")
    loaded = sf.load(release.save(tmp_path / "r.json"))
    assert loaded == release
    assert "anyone may have edited" in loaded._repr_html_()
    assert "anyone may have edited" not in release._repr_html_()
    assert pa.types.is_dictionary(release.to_frame()["carrier"].type)


def test_a_unit_that_stands_in_the_name_of_a_column_is_not_said_twice() -> None:
    captions = Captions(measured_in="EUR")
    assert captions.axis_name("Cost (EUR)") == "Cost (EUR)"
    assert captions.axis_name("Cost (EUR)", "{} squared") == "Cost (EUR squared)"
    assert captions.axis_name("Cost (USD)") == "Cost (USD) (EUR)"
    assert captions.axis_name("Cost") == "Cost (EUR)"
