"""The registry of questions, one line each, in the order in which commands show them.

A comment behind a name is the short help of its command, where the command is made from the
question.
"""

from .histogram import Histogram as Histogram
from .aggregates import Mean as Mean  # Publish the mean of a value, by group.
from .aggregates import Sum as Sum  # Publish the sum of a value, by group.
from .aggregates import Variance as Variance  # Publish the variance of a value, by group.
from .tables import Tables as Tables
from .persons import Persons as Persons
from .quantiles import Quantiles as Quantiles
from .partition.adaptive import AutoPartitioner as AutoPartitioner
from .partition.uniform import UniformPartitioner as UniformPartitioner
from .partition.adaptive import AdaptiveGridPartitioner as AdaptiveGridPartitioner
from .partition.privtree import PrivTreePartitioner as PrivTreePartitioner
from .partition.fixed_depth import BinaryPartitioner as BinaryPartitioner
from .partition.fixed_depth import MedianPartitioner as MedianPartitioner
from .partition.fixed_depth import MultiQuantilePartitioner as MultiQuantilePartitioner
from .clustering import KMeans as KMeans
