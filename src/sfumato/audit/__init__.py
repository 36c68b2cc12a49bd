"""Attack what is published, and compare with the promise: exact likelihood ratios on small data, and sampled outputs.

``audit`` gives one ``Finding`` per subject; ``subjects.SUBJECTS`` is the list. ``exact`` and ``sampled`` are the two attacks.
"""

from sfumato.audit.findings import COLUMNS, Finding, audit, sentence

__all__ = ["COLUMNS", "Finding", "audit", "sentence"]
