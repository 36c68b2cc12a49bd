"""Which kinds of people are there? Centres of clusters: with a trusted curator (``KMeans``), and with none (``PrivateKMeans``)."""

from sfumato.clustering.kmeans import KMeans
from sfumato.clustering.local import PrivateKMeans
from sfumato.clustering.release import KMeansRelease

__all__ = ["KMeans", "KMeansRelease", "PrivateKMeans"]
