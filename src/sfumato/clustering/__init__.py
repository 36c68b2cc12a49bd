"""k-means: with no trusted curator (``local``)."""

from sfumato.clustering.local import PrivateKMeans

__all__ = ["PrivateKMeans"]
