"""Which kinds of people are there? Centres of clusters.

``KMeans`` needs a trusted curator. ``PrivateKMeans`` needs none: every device adds its own noise.
"""

from sfumato.clustering.kmeans import KMeans
from sfumato.clustering.release import KMeansRelease
from sfumato.local.clustering import PrivateKMeans

__all__ = ["KMeans", "KMeansRelease", "PrivateKMeans"]
