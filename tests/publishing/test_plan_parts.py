"""Whole units are divided exactly: needs first, then what they leave, by weight and by size."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.publishing.divisions import Member, PlannedQuestion, parts_of

DOMAIN = sf.Domain(age=sf.Interval(0, 100, step=1), shop=sf.Keys())

MEMBERS = st.lists(
    st.one_of(
        st.builds(Member, st.integers(1, 10**6), st.just(False)),
        st.builds(Member, st.just(0), st.just(True), size=st.floats(0.1, 1e9)),
        st.builds(Member, st.integers(1, 10**6), st.just(True), size=st.floats(0.1, 1e9)),
    ),
    min_size=1,
    max_size=30,
)


@given(MEMBERS, st.integers(1, 10**12), st.sampled_from([1 / 3, 1 / 2, 2 / 3]))
def test_parts_add_up_and_nobody_gets_less_than_it_needs(members, total: int, exponent) -> None:
    parts = parts_of(total, members, exponent)
    least = sum(member.need + member.is_open for member in members)
    if parts is None:
        assert total < least
        return
    assert sum(parts) == total
    for part, member in zip(parts, members, strict=True):
        assert part >= member.need + member.is_open


def test_needs_alone_grow_in_proportion():
    members = [Member(10, False), Member(30, False)]
    assert parts_of(80, members, 0.5) == [20, 60]
    assert parts_of(40, members, 0.5) == [10, 30]
    assert parts_of(39, members, 0.5) is None


def test_sizes_divide_what_weights_leave():
    members = [
        Member(100, False),
        Member(0, True, Fraction(1, 2)),
        Member(0, True, size=4.0),
        Member(0, True, size=1.0),
    ]
    assert parts_of(1000, members, 0.5) == [100, 450, 300, 150]
    # Equal parts are equal to the unit.
    assert parts_of(10, [Member(0, True, size=7.0)] * 3, 2 / 3) == [3, 3, 4]


def asked(question, within=None, rows=None):
    return PlannedQuestion(question, DOMAIN, sf.Unit(), within, Fraction(2), rows)


def test_what_a_question_says_of_itself():
    table = asked(sf.Histogram("age"))
    assert table.counts
    assert table.takes_rho
    assert not table.uses_delta
    assert table.half_width(sf.PureDP(1)) == 3
    assert table.error(sf.PureDP(1), squared=False) == 2 * 100 * 3
    assert table.error(sf.PureDP(1), squared=True) == 2 * 100 * 9
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
