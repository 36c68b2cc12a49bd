"""Benchmarks: claims of speed that anyone can check. ``python -m benchmarks`` runs them.

Each subject is a module with a function ``rows``, which measures, and a ``CHART``. A figure of ours
stands beside that of a peer, a comparable library, or of a floor, the least work possible, measured
in the same run.
"""
