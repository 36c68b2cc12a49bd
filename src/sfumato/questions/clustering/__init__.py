"""Which kinds of people are there? Centres of clusters, with a trusted curator."""

from sfumato.questions.clustering.kmeans import KMeans
from sfumato.questions.clustering.release import KMeansRelease

__all__ = ["KMeans", "KMeansRelease"]
