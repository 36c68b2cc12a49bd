"""How many, in each group? Counts over cells and keys, with an accuracy for every one."""

from sfumato.histogram.accuracy import histogram_accuracy, histogram_epsilon
from sfumato.histogram.question import Histogram, HistogramRelease

__all__ = ["Histogram", "HistogramRelease", "histogram_accuracy", "histogram_epsilon"]
