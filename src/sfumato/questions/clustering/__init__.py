"""Which kinds of people are there? Centres of clusters, with a trusted curator.

* ``kmeans``: the question; ``release``: the answer
* ``methods``: how centres are found; ``lloyd``: Lloyd's step with noise, on whole numbers
* ``error``: how far a centre is from the mean of its rows
"""

from sfumato.questions.clustering.kmeans import KMeans
from sfumato.questions.clustering.release import KMeansRelease

__all__ = ["KMeans", "KMeansRelease"]
