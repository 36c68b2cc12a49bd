"""Attack what is published, and compare with the promise: exact likelihood ratios on small data, and sampled outputs.

``audit`` gives one ``Finding`` per subject, ``audit_question`` that of one question. ``subjects`` has what is audited;
``exact`` and ``sampled`` are the two attacks.
"""

from sfumato.audit.findings import COLUMNS, Finding, audit, audit_question, sentence

__all__ = ["COLUMNS", "Finding", "audit", "audit_question", "sentence"]
