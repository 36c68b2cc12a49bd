"""Attacks on the code that publishes, to measure how much privacy loss it really has.

* ``findings``: ``audit`` gives one ``Finding`` per subject, ``audit_question`` that of one question
* ``subjects``: what is audited; ``runs``: as an audit runs it
* ``likelihoods``: the exact attack, on small data; ``residuals``, ``selections``, ``decisions`` and
  ``keys``: exact attacks on mechanisms that it does not suit
* ``sampled``: the attack from outputs alone
"""

from sfumato.audit.findings import COLUMNS, Finding, audit, audit_question, sentence

__all__ = ["COLUMNS", "Finding", "audit", "audit_question", "sentence"]
