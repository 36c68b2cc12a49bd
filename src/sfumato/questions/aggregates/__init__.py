"""How much, on average, in each group? Means, sums and variances from exact integer sums.

* ``question``: the questions, and why they are private; ``preview``: their accuracy beforehand
* ``values``: which values are added up; ``encoding``: as which integers, and their true sums
* ``value_sums``: noisy sums, and the statistics that follow; ``release``: the answers
* ``intervals``: intervals, and quantiles of the noise; ``clips``: the choice of a clip
"""

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
