"""How many, in each group? Counts over cells and keys, with an accuracy for every one.

* ``question``: the question and its answer; ``accuracy``: how accurate, for which epsilon
* ``bins``: bins as users write them; ``records``: bins that the data choose; ``keys``: keys that
  are not known beforehand
* ``release``: tables of noisy counts; ``table_noise``: the noise of their sums
* ``statistics``: means, medians and the tail; ``ranges``: ranges of bins; ``strategies``: noise for
  many ranges
"""

from sfumato.questions.histogram.accuracy import histogram_accuracy, histogram_epsilon
from sfumato.questions.histogram.question import Histogram, HistogramRelease

__all__ = ["Histogram", "HistogramRelease", "histogram_accuracy", "histogram_epsilon"]
