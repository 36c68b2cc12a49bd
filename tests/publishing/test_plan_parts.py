"""Whole units are divided exactly: needs first, then what they leave, by weight and by size."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.publishing.divisions import Candidate, Part, divided_units

DOMAIN = sf.Domain(age=sf.Interval(0, 100, step=1), shop=sf.Keys())

PARTS = st.lists(
    st.one_of(
        st.builds(Part, st.integers(1, 10**6)),
        st.builds(Part, st.just(0), st.just(Fraction(0)), size=st.floats(0.1, 1e9)),
        st.builds(Part, st.integers(1, 10**6), st.just(Fraction(0)), size=st.floats(0.1, 1e9)),
    ),
    min_size=1,
    max_size=30,
)


@given(PARTS, st.integers(1, 10**12), st.sampled_from([1 / 3, 1 / 2, 2 / 3]))
def test_parts_add_up_and_nobody_gets_less_than_it_needs(members, total: int, exponent) -> None:
    parts = divided_units(total, members, exponent)
    least = sum(member.need + (member.fixed is not None) for member in members)
    if parts is None:
        assert total < least
        return
    assert sum(parts) == total
    for part, member in zip(parts, members, strict=True):
        assert part >= member.need + (member.fixed is not None)


def test_needs_alone_grow_in_proportion():
    members = [Part(10), Part(30)]
    assert divided_units(80, members, 0.5) == [20, 60]
    assert divided_units(40, members, 0.5) == [10, 30]
    assert divided_units(39, members, 0.5) is None


def test_sizes_divide_what_weights_leave():
    members = [
        Part(100),
        Part(0, Fraction(1, 2)),
        Part(0, Fraction(0), size=4.0),
        Part(0, Fraction(0), size=1.0),
    ]
    assert divided_units(1000, members, 0.5) == [100, 450, 300, 150]
    # Equal parts are equal to the unit.
    assert divided_units(10, [Part(0, Fraction(0), size=7.0)] * 3, 2 / 3) == [3, 3, 4]


def asked(question, within=None, rows=None, power=1):
    def preview(cost):
        return question.preview(DOMAIN, sf.Unit(), cost, rows)

    return Candidate(question, preview, within, Fraction(2), power=power)


def test_what_a_question_says_of_itself():
    table = asked(sf.Histogram("age"))
    assert table.counts
    assert table.takes_rho
    assert not table.uses_delta
    assert table.half_width(sf.PureDP(1)) == 3
    assert table.error(sf.PureDP(1)) == 2 * 100 * 3
    assert asked(sf.Histogram("age"), power=2).error(sf.PureDP(1)) == 2 * 100 * 9
    keys = asked(sf.Histogram("shop"))
    assert (keys.counts, keys.takes_rho, keys.uses_delta) == (False, False, True)
    mean = asked(sf.Mean("age"))
    assert (mean.counts, mean.takes_rho, mean.uses_delta) == (False, True, False)
    assert mean.half_width(sf.PureDP(1)) is None
    assert mean.loss(sf.PureDP("0.5")) == 2 * mean.loss(sf.PureDP(1)) == 2
    assert asked(sf.Mean("age"), rows=1000).half_width(sf.PureDP(1)) < 1
    # Counts of which centres are computed are not the answer.
    clusters = asked(sf.KMeans(2, "age"))
    assert clusters.half_width(sf.PureDP(1)) is None
    assert not clusters.counts
