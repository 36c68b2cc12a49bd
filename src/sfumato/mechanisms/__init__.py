"""Integers in, integers out: the only floor that turns true counts into noisy ones.

``noise`` adds Laplace or Gaussian noise to counts; ``thresholds`` selects keys that were not known
beforehand. ``selection`` and ``jointexp`` choose edges of an axis at given ranks, by ``ranks`` and
``scans``. ``sums`` bounds sums of noise of several scales. ``scripts`` is how the audit hands out
chosen draws in place of noise.
"""
