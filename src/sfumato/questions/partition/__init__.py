"""Where are the rows? Partitions: disjoint public boxes that cover the domain, with noisy counts.

* ``partitioner``: what all partitioners offer
* ``uniform``, ``adaptive`` (also the automatic one), ``privtree`` and ``fixed_depth`` (binary,
  median, multi-quantile): the partitioners
* ``growth``: trees that grow, and what each path has spent; ``geometry``: the boxes
* ``estimates``: from all noisy counts; ``ranges``: counts of ranges; ``release``: the answer
"""
