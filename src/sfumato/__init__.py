"""Publish statistics about people, and limit what they reveal about any one person.

State what is publicly known of a table, name its person, ask, and write the report:

>>> import sfumato as sf
>>> from sfumato.demo import flights_path
>>> domain = sf.Domain(hour=sf.Interval(0, 24), origin=sf.Categories(["EWR", "JFK", "LGA"]))
>>> flights = sf.source(flights_path(), domain, person="tailnum", rows_per_person=100)
>>> with sf.Publisher(flights, ledger="sfumato.db", account="flights", budget="3") as publisher:
...     release = publisher.release(sf.Histogram(["origin", "hour"]), epsilon="1")
>>> page = sf.report(release, "report.html")

The charge is on disk before a row is read. The same question again returns the stored answer and
costs nothing. Bounds and labels are public knowledge, and are never taken from the data.

==================  ==============================================================================
What you have       ``Domain`` of ``Interval``, ``Categories``, ``Keys``, ``Month``, ...; ``source``
What you ask        ``Histogram``, ``Tables``, ``Mean``, ``Sum``, ``Variance``, ``Persons``,
                    ``Quantiles``, ``AutoPartitioner``, ``KMeans``; ``Counter`` for running totals
What it would cost  ``preview``, ``window``, ``choose``; none of them reads the table
Who answers         ``Publisher``; ``Plan`` for several questions at once
What you get        releases: ``accuracy()``, ``interval()``, ``plot()``, ``to_frame()``,
                    ``save(path)``; ``load`` and ``report``
No trusted curator  ``BPM``, ``MultivariateLaplace``, ``PrivateKMeans``
==================  ==============================================================================

``help(sf.Histogram)`` explains one of them.
"""

from sfumato.basics import attached

_QUANTILES = 'Write sf.Quantiles("age", at=[0.5])'
_COUNTS = 'Write sf.Histogram("ward"), with several axes for a cross table'
_SPREAD = 'Write sf.Variance("age"); its square root is the standard deviation'
_EXTREMES = (
    'Write sf.Quantiles("age", at=[0.01, 0.99]): the least and the greatest are single persons'
)
_GROUPS = 'Write by="ward" in sf.Mean, sf.Sum or sf.Quantiles, or name the axes of a sf.Histogram'
_TABLE = 'Write sf.source("visits.csv", domain, person="patient", rows_per_person=4)'
_PUBLISHER = 'Write sf.Publisher(source, ledger="sfumato.db", budget="3")'
_ASKING = 'Write publisher.release(question, epsilon="0.5") of a sf.Publisher'
_PARTS = "Write sf.AutoPartitioner(), or one of the other partitioners"
_RISK = "It is in sf.risk"
_INSTEAD = {
    **dict.fromkeys(("Median", "Quantile", "Percentile", "Percentiles"), _QUANTILES),
    **dict.fromkeys(("Count", "Counts", "CrossTab", "Crosstab", "Histogram2D", "Hist"), _COUNTS),
    **dict.fromkeys(("Average", "Avg"), 'Write sf.Mean("age")'),
    **dict.fromkeys(("Total", "Totals"), 'Write sf.Sum("fare")'),
    **dict.fromkeys(("Std", "StdDev", "StandardDeviation", "Var"), _SPREAD),
    **dict.fromkeys(("Min", "Max", "Minimum", "Maximum", "Range"), _EXTREMES),
    **dict.fromkeys(("GroupBy", "Group", "By"), _GROUPS),
    **dict.fromkeys(
        ("CountDistinct", "Distinct", "Unique"), 'Write sf.Histogram("ward", count="persons")'
    ),
    **dict.fromkeys(("Table", "Dataset", "DataFrame", "read_csv", "read_parquet"), _TABLE),
    **dict.fromkeys(("Session", "Accountant", "Budget", "PrivacyBudget"), _PUBLISHER),
    **dict.fromkeys(("release", "publish", "query", "ask"), _ASKING),
    **dict.fromkeys(("Partitioner", "QuadTree", "Quadtree", "KDTree", "Grid"), _PARTS),
    **dict.fromkeys(("Date", "Day", "Datetime"), 'Write sf.Interval("2025-01-01", "2026-01-01")'),
    **dict.fromkeys(("Category", "Labels", "Boolean"), 'Write sf.Categories(["a", "b"])'),
    **dict.fromkeys(("Numeric", "Bounds", "Integer", "Float"), "Write sf.Interval(0, 100)"),
    **dict.fromkeys(("Laplace", "Gaussian", "advantage", "optimal_epsilon"), _RISK),
    **dict.fromkeys(("Cluster", "Clusters", "KMeansClustering"), "Write sf.KMeans(n_clusters=5)"),
    **dict.fromkeys(("RunningTotal", "RunningSum", "CumulativeSum"), "Write sf.Counter(365)"),
}
"""What to write in place of names that people look for."""

__getattr__, __dir__, __all__ = attached(__name__, _INSTEAD)
