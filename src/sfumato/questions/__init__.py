"""All questions of the library. The stub beside this file lists them: a new one is one line there.

Each kind of question has a wing:

* ``histogram``: how many rows or persons are in each group, by category, bin or key;
* ``aggregates``: means, sums and variances of a value, by group;
* ``persons``: how many persons there are, how many rows each has, and which limit to take;
* ``tables``: several tables of one data set that add up;
* ``quantiles``: below which values a quarter, half, three quarters of the rows lie;
* ``partition``: where the rows are: disjoint boxes with noisy counts;
* ``clustering``: centres of clusters, with a trusted curator;
* ``counters``: running totals that are published step by step.

The public door, the decoders of plans and releases, the command line, the audit and the benchmarks
read the list of questions. Questions of other packages join it by ``answers.registry``.
"""

from sfumato.basics import attached

__getattr__, __dir__, __all__ = attached(__name__)
