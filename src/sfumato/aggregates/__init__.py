"""How much, on average, in each group? Means, sums and variances from exact integer sums."""

from sfumato.aggregates.question import Mean, Sum, Variance
from sfumato.aggregates.release import AggregateRelease
from sfumato.aggregates.statistics import MeanRelease, SumRelease, VarianceRelease

__all__ = [
    "AggregateRelease",
    "Mean",
    "MeanRelease",
    "Sum",
    "SumRelease",
    "Variance",
    "VarianceRelease",
]
