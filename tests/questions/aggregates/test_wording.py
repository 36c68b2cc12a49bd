"""What reports say of values, and of those beyond a clip."""

from __future__ import annotations

from sfumato.questions.aggregates.value_sums import of_each_person
from sfumato.questions.aggregates.values import PersonsValues, Values


def test_only_the_bounds_of_sums_are_said_since_the_domain_has_the_others() -> None:
    rows = Values("cost", 0, 5000, 500_000, False)
    assert of_each_person(rows) == ""
    means, sums = (
        Values("cost", 0, 5000, 500_000, False, PersonsValues(statistic, 0.01, 0.0))  # type: ignore[arg-type]
        for statistic in ("mean", "sum")
    )
    assert of_each_person(means) == ", each by the mean of their values"
    assert of_each_person(sums) == (", each by the sum of their values, clipped to 0 to 5,000")
