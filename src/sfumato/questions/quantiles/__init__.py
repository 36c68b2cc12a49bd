"""Below which values do a quarter, half, three quarters of the rows lie?

* ``question``: the question; ``release``: its preview and its answer
* ``methods``: jointly, by halving, or by a tree, and the errors of ranks
* ``cells``: cells and sub-cells of an axis; ``ranks``: ranks from noisy counts
"""

from sfumato.questions.quantiles.question import Quantiles, QuantilesRelease

__all__ = ["Quantiles", "QuantilesRelease"]
