"""Which kinds of people are there? Centres of clusters, with a trusted curator."""

from sfumato.clustering.kmeans import KMeans
from sfumato.clustering.release import KMeansRelease

__all__ = ["KMeans", "KMeansRelease"]
