"""What follows from numbers of persons: how many there are, and what every limit leaves out."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from persons.tables import UNIT, binned, law_at, lognormal, pareto, release_of
from sfumato.random import PublicSeed

ROWS = np.minimum(pareto(3000), 100)


def test_the_number_of_persons_is_within_its_interval() -> None:
    found = release_of(ROWS).persons("0.999")
    assert found.low <= len(ROWS) <= found.high
    assert found.low >= 0


@pytest.mark.parametrize("limit", [1, 2, 7, 10, 11, 60, 99, 100])
def test_limits_affect_as_many_persons_as_have_more_rows(limit: int) -> None:
    found = release_of(ROWS).affected(limit, "0.9999")
    assert found.low <= (limit < ROWS).sum() <= found.high
    assert found.low <= found.value <= found.high


def test_the_interval_is_narrowest_at_the_end_of_a_bin() -> None:
    release = release_of(lognormal(5000))
    at_end = release.affected(8)
    within = release.affected(7)
    assert at_end.high - at_end.low < within.high - within.low


@pytest.mark.parametrize("limit", [1, 3, 7, 40])
def test_limits_keep_their_share_of_the_rows(limit: int) -> None:
    found = release_of(ROWS).kept(limit, "0.999")
    assert found.low <= np.minimum(ROWS, limit).sum() / ROWS.sum() <= found.high
    assert found.low <= found.value <= found.high


def test_of_nobody_nothing_is_known() -> None:
    release = release_of(np.zeros(0, np.int64), epsilon="0.1")
    found = release.kept(10)
    assert (found.low, found.high) == (0.1, 1)
    assert not found.known
    assert release.persons().low == 0


@pytest.mark.parametrize("limit", [0, -1, 2.5, "ten", 10**10, True])
def test_a_limit_is_a_whole_number(limit: object) -> None:
    with pytest.raises(sf.UsageError, match="a limit is a whole number"):
        release_of(ROWS).affected(limit)  # type: ignore[arg-type]


def test_shares_need_a_bound_above_the_limit() -> None:
    with pytest.raises(sf.UsageError, match="nobody has more than 100 rows"):
        release_of(ROWS).kept(101)
    with pytest.raises(sf.UsageError, match="without a bound on a person's rows"):
        release_of(ROWS, most_rows=None).kept(10)
    with pytest.raises(sf.UsageError, match="are counted together"):
        release_of(ROWS, most_rows=None).affected(10**5)


def test_the_table_has_a_row_for_each_bin() -> None:
    frame = release_of(ROWS).to_frame().to_pylist()
    assert [row["rows"] for row in frame][:8] == ["1", "2", "3", "4", "5", "6", "7 to 8", "9 to 10"]
    assert frame[-1]["rows"] == "81 or more"
    assert frame[-1]["kept"] == 1
    open_ended = release_of(ROWS, most_rows=None).to_frame().to_pylist()
    assert open_ended[-1]["limit"] is None
    assert {row["kept"] for row in open_ended} == {None}


def test_its_sentences_say_what_limits_leave_out() -> None:
    release = release_of(ROWS, epsilon="5")
    sentence = release.sentence(20)
    assert sentence.startswith("At most 20 rows of each rider are counted: ")
    assert "of the rows are kept" in sentence
    assert "if nobody has more than 100 rows" in sentence
    assert "rows are kept" not in release_of(ROWS, most_rows=None).sentence(20)
    assert release.facts[0].startswith("There are ")
    assert all("rows of each rider are counted, " in fact for fact in release.facts[1:])


@pytest.mark.parametrize("most_rows", [100, None])
def test_it_is_drawn(most_rows: int | None) -> None:
    ax = release_of(ROWS, most_rows=most_rows).plot()
    assert ax.get_xlabel() == "limit on rows per person"
    assert ax.get_ylabel() == ("rows kept" if most_rows else "persons with more rows")


def test_a_file_whose_numbers_do_not_fit_is_refused() -> None:
    release = release_of(ROWS)
    with pytest.raises(sf.UsageError, match="do not fit its bins"):
        sf.PersonsRelease(
            most_rows=7,
            domain=(),
            counts=release.counts,
            law=release.law,
            guarantee=release.guarantee,
        )


def test_intervals_of_affected_persons_miss_as_rarely_as_stated() -> None:
    trials = 300
    counts = binned(ROWS, 100)
    law = law_at("0.3")
    noise = law.sample(trials * len(counts), PublicSeed(5)).reshape(trials, -1)
    truth = (ROWS > 10).sum()
    example = release_of(ROWS, epsilon="0.3")
    misses = 0
    for each in noise:
        release = sf.PersonsRelease(
            most_rows=100,
            domain=(),
            counts=counts + each,
            law=law,
            guarantee=example.guarantee,
        )
        found = release.affected(10, "0.8")
        misses += not found.low <= truth <= found.high
    standard_error = np.sqrt(0.2 * 0.8 / trials)
    assert misses / trials <= 0.2 + 4 * standard_error
    assert misses / trials >= 0.2 - 6 * standard_error
    assert example.unit.person == UNIT.person
