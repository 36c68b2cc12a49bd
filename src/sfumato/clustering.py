"""Which kinds of people are there, with no trusted curator? The public name of that question."""

from sfumato.local.clustering import PrivateKMeans

__all__ = ["PrivateKMeans"]
