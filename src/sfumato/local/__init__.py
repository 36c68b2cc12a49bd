"""Privacy with no trusted curator: each device adds the noise, and the server sees only reports.

*On a device.* ``bpm`` holds the bounded perturbation mechanism, and ``mechanism`` the multivariate
Laplace mechanism, with what both share. ``client`` keeps a device to one report.

*How reports are drawn from private bits*: a distance, a direction, and a lattice cell. ``cells``
draws reports around points, with ``distances`` for the distance and a point of the circle or
``random.normal`` for the direction. Floats decide what is certain: ``cells`` proves that they leave
no trace in a report. ``reals`` computes the rest from the same words with as many digits as it
takes. ``constants`` holds the figures of BPM.

*How a server reads reports*: from reports and the known law of the noise to clusters of points.
``collector`` gathers reports, and ``decoder`` is the door to the rest. It fits a ``density`` of any
shape in one and two dimensions, and ``normal_clusters`` by the likelihood of reports; both see the
noise as a mixture of normals. Where reports say little, it draws from the ``posterior``. It tests
whether the reports look like those of normal clusters. All of it is post-processing.

``clustering`` tries the whole way on a table, and ``table`` does so over epsilon and L, on data you
may see.
"""

from sfumato.local.bpm import BPM
from sfumato.local.client import Client, Report
from sfumato.local.collector import Collector
from sfumato.local.decoder import Decoded, decode
from sfumato.local.mechanism import MultivariateLaplace

__all__ = ["BPM", "Client", "Collector", "Decoded", "MultivariateLaplace", "Report", "decode"]
