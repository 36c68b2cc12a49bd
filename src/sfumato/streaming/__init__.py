"""Running totals under continual observation: noise that is correlated over time, and what it costs."""

from sfumato.streaming.blt import BLT
from sfumato.streaming.sensitivity import squared_sensitivity, squared_tree_sensitivity
from sfumato.streaming.toeplitz import coefficients, decoder, dyadic_coefficients

__all__ = ["BLT", "coefficients", "decoder", "dyadic_coefficients", "squared_sensitivity", "squared_tree_sensitivity"]
