"""Which kinds of people are there? Centres of clusters.

``KMeans`` needs a trusted curator. ``PrivateKMeans`` needs none: every device adds its own noise.
"""

from sfumato.clustering.kmeans import KMeans
from sfumato.clustering.local import PrivateKMeans
from sfumato.clustering.release import KMeansRelease

__all__ = ["KMeans", "KMeansRelease", "PrivateKMeans"]
