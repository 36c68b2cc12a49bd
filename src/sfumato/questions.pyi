"""The registry of questions, one line each, in the order in which commands show them."""

from .histogram import Histogram as Histogram
from .aggregates import Mean as Mean
from .aggregates import Sum as Sum
from .aggregates import Variance as Variance
from .quantiles import Quantiles as Quantiles
from .partition.auto import AutoPartitioner as AutoPartitioner
from .partition.uniform import UniformPartitioner as UniformPartitioner
from .partition.adaptive import AdaptiveGridPartitioner as AdaptiveGridPartitioner
from .partition.privtree import PrivTreePartitioner as PrivTreePartitioner
from .partition.binary import BinaryPartitioner as BinaryPartitioner
from .partition.median import MedianPartitioner as MedianPartitioner
from .partition.median import MultiQuantilePartitioner as MultiQuantilePartitioner
from .clustering import KMeans as KMeans
