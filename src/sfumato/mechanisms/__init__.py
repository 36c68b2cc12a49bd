"""Integers in, integers out: the only floor that turns true counts into noisy ones.

``noise`` adds Laplace or Gaussian noise to counts, or the draws that the audit chose in its place;
``bounded_noise`` is noise that never exceeds a bound. ``noise_sums`` bounds sums of noise of
several scales. ``thresholds`` selects keys that were not known beforehand, ``gaussian_keys`` by
Gaussian noise. ``selection`` chooses one edge of an axis at a given rank, ``jointexp`` several at
once, and ``joint_total`` several beside a noisy number of rows.
"""

from sfumato.basics.lazily import attached

__getattr__, __dir__, __all__ = attached(__name__)
