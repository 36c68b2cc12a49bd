"""Attacks on the code that publishes, to measure how much privacy loss it really has.

``audit`` gives one ``Finding`` per subject, ``audit_question`` that of one question (``findings``).
``subjects`` lists what is audited. The attacks are ``likelihoods``, exact on small data, with
``selections`` for mechanisms without additive noise; and ``sampled``, from outputs alone.
"""

from sfumato.audit.findings import COLUMNS, Finding, audit, audit_question, sentence

__all__ = ["COLUMNS", "Finding", "audit", "audit_question", "sentence"]
