"""Several tables of one data set that add up: one question, one charge, one choice of rows.

* ``question``: the question; ``asked``: what may be asked, and why it is private; ``release``: the
  answer; ``totals``: totals that everybody knows; ``cells``: how far cells are from the truth
* ``levels``: axes as chains of nested levels, and margins
* ``design``: how much noise each part gets; ``gaussian_design``: of residuals
* ``residuals`` and ``trees``: least squares over all tables; ``reconciling``: tables paid apart
* ``rounding``: tables without negative counts, in whole numbers
"""

from sfumato.questions.tables.question import Tables
from sfumato.questions.tables.reconciling import reconcile
from sfumato.questions.tables.release import TablesRelease

__all__ = ["Tables", "TablesRelease", "reconcile"]
