"""How many, in each group? Counts over cells and keys, with an accuracy for every one."""

from sfumato.questions.histogram.accuracy import histogram_accuracy, histogram_epsilon
from sfumato.questions.histogram.question import Histogram, HistogramRelease

__all__ = ["Histogram", "HistogramRelease", "histogram_accuracy", "histogram_epsilon"]
