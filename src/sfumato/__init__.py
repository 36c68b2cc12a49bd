"""Sfumato publishes what personal data show without betraying anyone in them.

A question is a frozen value; a publisher charges the ledger, counts once, and returns a release that states its own
guarantee and its own accuracy. Nothing heavy is imported until a name is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_WHERE = {
    "AdaptiveGridPartitioner": "sfumato.partition",
    "ApproxDP": "sfumato.privacy.measures",
    "AutoPartitioner": "sfumato.partition",
    "BPM": "sfumato.local.bpm",
    "BinaryPartitioner": "sfumato.partition",
    "BoundsRequired": "sfumato.errors",
    "BudgetExceeded": "sfumato.errors",
    "Categories": "sfumato.domain",
    "Calendar": "sfumato.streaming",
    "Choice": "sfumato.risk",
    "Counter": "sfumato.streaming",
    "CounterRelease": "sfumato.streaming",
    "DataError": "sfumato.errors",
    "Domain": "sfumato.domain",
    "Estimate": "sfumato.release",
    "Guarantee": "sfumato.privacy.guarantee",
    "Histogram": "sfumato.histogram",
    "HistogramRelease": "sfumato.histogram",
    "Infeasible": "sfumato.errors",
    "InternalError": "sfumato.errors",
    "Interval": "sfumato.domain",
    "KMeans": "sfumato.clustering",
    "KMeansRelease": "sfumato.clustering",
    "Keys": "sfumato.domain",
    "LedgerError": "sfumato.errors",
    "MedianPartitioner": "sfumato.partition",
    "MetricDP": "sfumato.privacy.measures",
    "MultiQuantilePartitioner": "sfumato.partition",
    "MultivariateLaplace": "sfumato.local.laplace",
    "Partition": "sfumato.partition",
    "Plan": "sfumato.plan",
    "Preview": "sfumato.release",
    "PrivTreePartitioner": "sfumato.partition",
    "PrivateKMeans": "sfumato.clustering.local",
    "Publisher": "sfumato.publisher",
    "PureDP": "sfumato.privacy.measures",
    "Quantiles": "sfumato.quantiles",
    "QuantilesRelease": "sfumato.quantiles",
    "Release": "sfumato.release",
    "Risk": "sfumato.risk",
    "SfumatoError": "sfumato.errors",
    "Shares": "sfumato.privacy.allocation",
    "Stream": "sfumato.streams",
    "UniformPartitioner": "sfumato.partition",
    "Unit": "sfumato.privacy.unit",
    "UsageError": "sfumato.errors",
    "Window": "sfumato.choosing",
    "Within": "sfumato.choosing",
    "ZCDP": "sfumato.privacy.measures",
    "choose": "sfumato.choosing",
    "histogram_accuracy": "sfumato.histogram",
    "histogram_epsilon": "sfumato.histogram",
    "load": "sfumato.releases",
    "preview": "sfumato.publisher",
    "report": "sfumato.pages",
    "risk": "",  # a module of its own
    "source": "sfumato.data",
    "testing": "",  # a module of its own
    "window": "sfumato.choosing",
}

if TYPE_CHECKING:
    from sfumato import risk, testing
    from sfumato.choosing import Window, Within, choose, window
    from sfumato.clustering import KMeans, KMeansRelease
    from sfumato.clustering.local import PrivateKMeans
    from sfumato.data import source
    from sfumato.domain import Categories, Domain, Interval, Keys
    from sfumato.errors import (
        BoundsRequired,
        BudgetExceeded,
        DataError,
        Infeasible,
        InternalError,
        LedgerError,
        SfumatoError,
        UsageError,
    )
    from sfumato.histogram import Histogram, HistogramRelease, histogram_accuracy, histogram_epsilon
    from sfumato.local.bpm import BPM
    from sfumato.local.laplace import MultivariateLaplace
    from sfumato.pages import report
    from sfumato.partition import (
        AdaptiveGridPartitioner,
        AutoPartitioner,
        BinaryPartitioner,
        MedianPartitioner,
        MultiQuantilePartitioner,
        Partition,
        PrivTreePartitioner,
        UniformPartitioner,
    )
    from sfumato.plan import Plan
    from sfumato.privacy.allocation import Shares
    from sfumato.privacy.guarantee import Guarantee
    from sfumato.privacy.measures import ZCDP, ApproxDP, MetricDP, PureDP
    from sfumato.privacy.unit import Unit
    from sfumato.publisher import Publisher, preview
    from sfumato.quantiles import Quantiles, QuantilesRelease
    from sfumato.release import Estimate, Preview, Release
    from sfumato.releases import load
    from sfumato.risk import Choice, Risk
    from sfumato.streaming import Calendar, Counter, CounterRelease
    from sfumato.streams import Stream

__all__ = [
    "AdaptiveGridPartitioner",
    "ApproxDP",
    "AutoPartitioner",
    "BPM",
    "BinaryPartitioner",
    "BoundsRequired",
    "BudgetExceeded",
    "Calendar",
    "Categories",
    "Choice",
    "Counter",
    "CounterRelease",
    "DataError",
    "Domain",
    "Estimate",
    "Guarantee",
    "Histogram",
    "HistogramRelease",
    "Infeasible",
    "InternalError",
    "Interval",
    "KMeans",
    "KMeansRelease",
    "Keys",
    "LedgerError",
    "MedianPartitioner",
    "MetricDP",
    "MultiQuantilePartitioner",
    "MultivariateLaplace",
    "Partition",
    "Plan",
    "Preview",
    "PrivTreePartitioner",
    "PrivateKMeans",
    "Publisher",
    "PureDP",
    "Quantiles",
    "QuantilesRelease",
    "Release",
    "Risk",
    "SfumatoError",
    "Shares",
    "Stream",
    "UniformPartitioner",
    "Unit",
    "UsageError",
    "Window",
    "Within",
    "ZCDP",
    "__version__",
    "choose",
    "histogram_accuracy",
    "histogram_epsilon",
    "load",
    "preview",
    "report",
    "risk",
    "source",
    "testing",
    "window",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    where = _WHERE[name]
    value = getattr(importlib.import_module(where), name) if where else importlib.import_module(f"sfumato.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
