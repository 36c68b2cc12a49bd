"""Running totals under continual observation: noise that is correlated over time, and what it costs."""

from sfumato.streaming.blt import BLT, BLTAggregator, BLTState
from sfumato.streaming.generators import GaussianNoiseGenerator, NoiseState, Spec, StatelessValueGenerator, ValueGenerator
from sfumato.streaming.sensitivity import squared_sensitivity, squared_tree_sensitivity
from sfumato.streaming.toeplitz import ToeplitzAggregator, ToeplitzState, coefficients, decoder, dyadic_coefficients
from sfumato.streaming.tree import EfficientTreeAggregator, TreeAggregator, TreeState, get_step_idx

__all__ = [
    "BLT",
    "BLTAggregator",
    "BLTState",
    "EfficientTreeAggregator",
    "GaussianNoiseGenerator",
    "NoiseState",
    "Spec",
    "StatelessValueGenerator",
    "ToeplitzAggregator",
    "ToeplitzState",
    "TreeAggregator",
    "TreeState",
    "ValueGenerator",
    "coefficients",
    "decoder",
    "dyadic_coefficients",
    "get_step_idx",
    "squared_sensitivity",
    "squared_tree_sensitivity",
]
