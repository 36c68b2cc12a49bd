"""Privacy with no trusted curator: each device adds the noise, and the server sees only reports.

``bpm`` and ``laplace`` perturb points, with what they share in ``mechanism`` and their exact
samplers in ``sampling``. ``client`` keeps a device to one report. ``collector`` gathers reports,
and ``decoding`` finds the clusters in them. ``diagnostics`` compares simulated reports with their
law. Floats are computed here: ``sampling.cells`` proves that they leave no trace in a report.
"""

from sfumato.local.bpm import BPM
from sfumato.local.client import Client, Report
from sfumato.local.collector import Collector
from sfumato.local.decoding.decoder import Decoded, decode
from sfumato.local.laplace import MultivariateLaplace

__all__ = ["BPM", "Client", "Collector", "Decoded", "MultivariateLaplace", "Report", "decode"]
