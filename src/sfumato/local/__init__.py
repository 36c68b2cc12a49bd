"""Privacy with no trusted curator: each device adds the noise, and the server sees only reports.

``bpm`` and ``laplace`` perturb points, with what they share in ``mechanism`` and their exact
samplers in ``sampling``. ``client`` keeps a device to one report. ``collector`` gathers reports,
and ``decoding`` finds the clusters in them. ``diagnostics`` compares simulated reports with their
law. Floats are computed here: ``sampling.cells`` proves that they leave no trace in a report.

How a server reads reports: from reports and the known law of the noise to clusters of points.

``decoder`` is the door. It fits a ``density`` of any shape in one and two dimensions, and
``normal_clusters`` by the ``likelihood`` of reports; both see the noise as a mixture of normals
(``noise_law``). ``misfit`` tests whether the reports look like those of normal clusters. All of it
is post-processing.

How reports are drawn from private bits: a distance, a direction, and a lattice cell.

``cells`` draws reports around points, with ``distances`` for the distance and ``circle`` or
``random.normal`` for the direction. Floats decide what is certain. ``reals`` computes the rest from
the same words with as many digits as it takes, with ``exact_normals`` for normals and ``decimals``
for arithmetic. ``constants`` holds the figures of BPM, and ``two_stage`` is the paper's own
sampler.
"""

from sfumato.local.bpm import BPM
from sfumato.local.client import Client, Report
from sfumato.local.collector import Collector
from sfumato.local.decoder import Decoded, decode
from sfumato.local.mechanism import MultivariateLaplace

__all__ = ["BPM", "Client", "Collector", "Decoded", "MultivariateLaplace", "Report", "decode"]
