"""How much, on average, in each group? Means, sums and variances from exact integer sums."""

from sfumato.questions.aggregates.question import Mean, Sum, Variance
from sfumato.questions.aggregates.release import (
    AggregateRelease,
    MeanRelease,
    SumRelease,
    VarianceRelease,
)

__all__ = [
    "AggregateRelease",
    "Mean",
    "MeanRelease",
    "Sum",
    "SumRelease",
    "Variance",
    "VarianceRelease",
]
