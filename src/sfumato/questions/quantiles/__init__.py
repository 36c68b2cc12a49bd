"""Below which values do a quarter, half, three quarters of the rows lie?"""

from sfumato.questions.quantiles.question import Quantiles, QuantilesRelease

__all__ = ["Quantiles", "QuantilesRelease"]
