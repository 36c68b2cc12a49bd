"""Several tables of one data set that add up: one question, one charge, one choice of rows."""

from sfumato.questions.tables.question import Tables
from sfumato.questions.tables.reconciling import reconcile
from sfumato.questions.tables.release import TablesRelease

__all__ = ["Tables", "TablesRelease", "reconcile"]
