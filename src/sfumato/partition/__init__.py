"""Where, along which values? Disjoint public boxes that cover the domain exactly, each with a noisy count."""

from sfumato.partition.adaptive import AdaptiveGridPartitioner
from sfumato.partition.auto import AutoPartitioner
from sfumato.partition.binary import BinaryPartitioner
from sfumato.partition.median import MedianPartitioner, MultiQuantilePartitioner
from sfumato.partition.partition import Partition
from sfumato.partition.privtree import PrivTreePartitioner
from sfumato.partition.uniform import UniformPartitioner

__all__ = [
    "AdaptiveGridPartitioner",
    "AutoPartitioner",
    "BinaryPartitioner",
    "MedianPartitioner",
    "MultiQuantilePartitioner",
    "Partition",
    "PrivTreePartitioner",
    "UniformPartitioner",
]
