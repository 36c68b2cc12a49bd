"""Where, along which values? Disjoint public boxes that cover the domain, each with a noisy count."""

from sfumato.partition.partition import Partition
from sfumato.partition.uniform import UniformPartitioner

__all__ = ["Partition", "UniformPartitioner"]
