"""How a server reads reports: from reports and the known law of the noise to clusters of points.

``decoder`` is the door. It fits a ``density`` of any shape in one and two dimensions, and
``normal_clusters`` by the ``likelihood`` of reports; both see the noise as a mixture of normals
(``noise_law``). ``misfit`` tests whether the reports look like those of normal clusters. All of it
is post-processing.
"""
