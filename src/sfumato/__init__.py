"""Publish statistics about people, and limit what they reveal about any one person.

State what is publicly known of a table, name its person, ask, and write the report:

>>> import sfumato as sf
>>> from sfumato.demo import flights_path
>>> domain = sf.Domain(hour=sf.Interval(0, 24), origin=sf.Categories(["EWR", "JFK", "LGA"]))
>>> flights = sf.source(flights_path(), domain, person="tailnum", rows_per_person=100)
>>> with sf.Publisher(flights, ledger="budget.db", account="flights", budget="3") as publisher:
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

from sfumato.basics.lazily import attached

__getattr__, __dir__, __all__ = attached(__name__)
