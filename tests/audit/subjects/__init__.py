"""Subjects by hand: small data on which a mechanism of the library spends all that it may.

The audit asks questions by their examples. These know more of each mechanism: which data sets show
the whole loss, and how much of the claim the exact audit must find at least (``Subject.least``).
"""

from __future__ import annotations

from audit.subjects import (
    clusters,
    histograms,
    partitions,
    selections,
)
from sfumato.audit.subjects import Subject, machines

MODULES = (
    histograms,
    partitions,
    selections,
    clusters,
    machines,
)
SUBJECTS: tuple[Subject, ...] = tuple(
    subject for module in MODULES for subject in module.subjects()
)
LONG = {
    "Automatic partition",
    "Binary partition",
    "Uniform grid, blocks",
    "Quartiles, auto",
    "Quartiles, recursive",
    "k-means, privtree",
    "histogram: Histogram of k, threshold, in parts",
    "mean: Mean of x over persons by y, auto",
}
"""What takes seconds each in every test, and is audited elsewhere, too.

The audit's own subjects ask the questions of those by hand; ``test_keys`` selects keys in parts;
``aggregates/test_proofs`` has the exact figures of clips that are found.
"""
