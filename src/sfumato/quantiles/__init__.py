"""Below which values do a quarter, half, three quarters of the rows lie?"""

from sfumato.quantiles.question import Quantiles
from sfumato.quantiles.release import QuantilesRelease

__all__ = ["Quantiles", "QuantilesRelease"]
