"""Releases in, one HTML page out. Cannot reach data, ledger or publisher."""

from sfumato.pages.page import report

__all__ = ["report"]
