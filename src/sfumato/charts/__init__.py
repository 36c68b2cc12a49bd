"""Pictures of releases: one style, one file per kind of picture.

* ``style`` and ``vector``: how all of them look, and how they are written; ``scales``: their axes;
  ``margins``: room around them
* ``histograms``, ``heat``, ``families``, ``aggregates``, ``persons``, ``quantiles``, ``clusters``:
  answers of those questions
* ``maps``: partitions, with ``geography``; ``cumulative`` and ``streams``: running totals
* ``local``: reports of devices; ``risk`` and ``windows``: choices of epsilon
* ``worker``: pictures of a page, drawn by several processes

Nothing else imports matplotlib.
"""
