"""What previews say of whole numbers in bins."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.structs import to_bytes
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.questions.histogram.bins import with_whole_numbers


def remarks(axis: sf.Interval, **bins: object) -> tuple[str, ...] | msgspec.UnsetType:
    question = sf.Histogram("absences", **bins)
    preview = sf.preview(question, domain={"absences": axis}, unit=sf.Unit(), epsilon=1)
    found = preview.whole_numbers
    if found is not msgspec.UNSET:
        assert set(found) <= set(preview.remarks())
        assert all(sentence in str(preview) for sentence in found)
    return found


@pytest.mark.parametrize(
    ("axis", "bins", "says"),
    [
        (sf.Interval(0, 12), {}, "hold 2 of them and others 1: "),
        (sf.Interval(0, 12), {}, "; then declare step = 1 and upper = 13"),
        (sf.Interval(0, 5, missing=True), {}, "hold 1 of them and others none: "),
        (sf.Interval(0, 100), {"bins": 30}, "upper = 101, and give the bins a whole width"),
        (sf.Interval(0, 13, step=1), {"bins": 10}, "absences has whole numbers, and some"),
        (sf.Interval(0, 100), {"width": 1.5}, "; then give the bins a whole width"),
        (sf.Interval(0, 13, step=1), {}, "from 0 (and below) to 12 (and above)"),
    ],
)
def test_a_preview_says_which_whole_numbers_lie_in_bins(axis, bins, says) -> None:
    (sentence,) = remarks(axis, **bins)
    assert says in sentence


@pytest.mark.parametrize(
    ("axis", "bins"),
    [
        (sf.Interval(0, 120), {}),
        (sf.Interval(0, 1), {}),
        (sf.Interval(0.5, 12), {}),
        (sf.Interval(0, 1000), {"bins": 70}),
        (sf.Interval(0, 10), {"bins": 1000}),
        (sf.Interval(0, 120), {"bins": [0, 17.5, 65, 120]}),
        (sf.Interval(0, 121, step=1), {"width": 10}),
        (sf.Interval("2026-01-01", "2026-02-01"), {"bins": 10}),
    ],
)
def test_nothing_is_said_where_bins_have_equally_many_or_nearly(axis, bins) -> None:
    assert remarks(axis, **bins) is msgspec.UNSET


@pytest.mark.parametrize("bins", [2, 3, 5, 7, 9, 11, 16, 20, 40, 50])
def test_what_is_said_is_what_the_bins_hold(bins: int) -> None:
    """Each whole number is sent to its bin; the upper bound, which the last bin has too, is not."""
    axis = GridAxis("x", 0.0, 48.0, bins)
    held = np.bincount(axis.locate(np.arange(48.0)), minlength=bins)
    preview = sf.preview(
        sf.Histogram("x", bins=bins), domain={"x": sf.Interval(0, 48)}, unit=sf.Unit(), epsilon=1
    )
    is_uneven = bool(held.max() > held.min()) and held.max() < 11
    assert (preview.whole_numbers is not msgspec.UNSET) == is_uneven
    if is_uneven:
        low = str(held.min() or "none")
        assert f"hold {held.max()} of them and others {low}:" in preview.whole_numbers[0]


def test_families_of_tables_say_it_too() -> None:
    domain = {"a": sf.Interval(0, 12), "b": sf.Interval(0, 24, step=1)}
    preview = sf.preview(sf.Tables([["a", "b"]]), domain=domain, unit=sf.Unit(), rho=1)
    first, second = preview.whole_numbers
    assert first.startswith("if a has only whole numbers, ")
    assert second.startswith("b has a bin for each whole number from 0 ")


def test_a_preview_without_such_a_remark_is_stored_as_before() -> None:
    preview = sf.preview(
        sf.Histogram("x"), domain={"x": sf.Interval(0, 1)}, unit=sf.Unit(), epsilon=1
    )
    assert b"whole_numbers" not in to_bytes(preview)
    said = with_whole_numbers(preview, Lattice((GridAxis("x", 0.0, 12.0, 10),)))
    assert b"whole_numbers" in to_bytes(said)
