"""How many, in each group? Counts over public cells, with an accuracy for every one."""

from sfumato.histogram.histogram import Histogram, HistogramRelease

__all__ = ["Histogram", "HistogramRelease"]
