"""Reports: one HTML page about releases. Nothing here can reach data, ledger or publisher."""

from sfumato.reports.page import report

__all__ = ["report"]
