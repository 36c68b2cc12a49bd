"""The disclosure document: what a registry of deployments and an evaluator ask, from releases.

* ``disclose``: the whole document, with the checklist
* ``entry``: the entry of the registry; ``fields``: its fields, and words of releases

It sees releases and the public part of a ledger. It never sees data.
"""

from sfumato.reports.disclosure.disclose import Disclosure, disclose

__all__ = ["Disclosure", "disclose"]
