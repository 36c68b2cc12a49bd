"""Privacy with no trusted curator: each person's own device adds the noise, and the server sees
reports only.

``bpm`` and ``laplace`` perturb; ``client`` keeps a device to one report; ``collector`` gathers
reports and ``decoder`` finds the clusters in them. Floats live here: ``offsets`` proves why they
leave no trace in a report.
"""

from sfumato.local.bpm import BPM
from sfumato.local.client import Client, Report
from sfumato.local.collector import Collector
from sfumato.local.decoding.decoder import Decoded, decode
from sfumato.local.laplace import MultivariateLaplace

__all__ = ["BPM", "Client", "Collector", "Decoded", "MultivariateLaplace", "Report", "decode"]
