"""Where, along which values? Disjoint public boxes that cover the domain exactly, each with a noisy count."""

from sfumato.partition.binary import BinaryPartitioner
from sfumato.partition.partition import Partition
from sfumato.partition.uniform import UniformPartitioner

__all__ = ["BinaryPartitioner", "Partition", "UniformPartitioner"]
