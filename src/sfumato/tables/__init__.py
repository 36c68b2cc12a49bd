"""Several tables of one data set that add up: one question, one charge, one choice of rows."""

from sfumato.tables.question import Tables
from sfumato.tables.reconciling import reconcile
from sfumato.tables.release import TablesRelease

__all__ = ["Tables", "TablesRelease", "reconcile"]
