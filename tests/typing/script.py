# pyright: strict
"""A user's script that a type checker accepts as it stands: it is checked and never run."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, assert_type

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
import polars as pl

import sfumato as sf
from sfumato.answers.counts import Counts, Needs
from sfumato.answers.preview import CountsPreview
from sfumato.answers.registry import register
from sfumato.domain.lattice import Lattice
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.privacy.guarantee import Proof, assumptions_of
from sfumato.privacy.measures import CentralMeasure
from sfumato.publishing.previews import PlanPreviews
from sfumato.random.bits import Bits
from sfumato.streaming import GaussianNoiseGenerator, TreeAggregator

domain = sf.Domain(
    age=sf.Interval(0, 100, step=1),
    wage=sf.Interval(0, "10000"),
    sector=sf.Categories(["public", "private"], missing="none"),
    shop=sf.Keys(),
    weekday=sf.Weekday("hired", timezone="Europe/Berlin", missing="not stated"),
    month=sf.Month("hired", "2024-01", "2024-12", other="another"),
    year=sf.Year("hired", 2019, 2024),
    seniority=sf.Interval(0, 50, missing=True, column="SENIORITY"),
)
people = sf.source(
    "people.parquet",
    domain,
    person="id",
    rows_per_person=4,
    where={"sector": ["public"], "age": (18, None)},
)
assert_type(people, sf.Source)


# --- the library's own questions ------------------------------------------------------------------

with sf.Publisher(people, ledger="budget.db", account="people", budget="3") as publisher:
    assert_type(publisher, sf.Publisher)
    histogram = publisher.release(sf.Histogram(["age", "sector"], bins={"age": 10}), epsilon="0.5")
    quartiles = publisher.release(
        sf.Quantiles("wage", at=[0.25, 0.5, 0.75], by="sector"), epsilon=0.5
    )
    partition = publisher.release(sf.MedianPartitioner(["age", "wage"], depth=6), rho="0.1")
    clusters = publisher.release(sf.KMeans(5), epsilon=Fraction(1, 2), key="clusters")
    several = publisher.release([sf.Histogram("age"), sf.KMeans(3)], epsilon="0.2", fresh=True)
    planned = publisher.release(
        sf.Plan([sf.Histogram("age"), sf.Quantiles("wage")], shares=[2, 1]), epsilon="0.2"
    )

captioned = publisher.release(
    sf.Mean("wage", by="sector", heading="Wages", measured_in="euros", label_names={"public": "P"}),
    epsilon="0.5",
)
both = publisher.release((sf.Histogram("age"), sf.KMeans(3)), epsilon="0.2")
alike = publisher.release([sf.Histogram("age"), sf.Histogram("wage")], epsilon="0.2")

assert_type(captioned, sf.MeanRelease)
assert_type(both, tuple[sf.HistogramRelease, sf.KMeansRelease])
assert_type(alike, tuple[sf.HistogramRelease, ...])
assert_type(histogram, sf.HistogramRelease)
assert_type(quartiles, sf.QuantilesRelease)
assert_type(partition, sf.Partition)
assert_type(clusters, sf.KMeansRelease)
of_either: tuple[sf.Release, ...] = several
assert_type(planned, tuple[sf.Release, ...])

partitioners = [
    publisher.release(sf.AutoPartitioner("age"), epsilon="0.1"),
    publisher.release(sf.UniformPartitioner(partitions=100), epsilon="0.1"),
    publisher.release(sf.AdaptiveGridPartitioner(), epsilon="0.1"),
    publisher.release(sf.PrivTreePartitioner(), epsilon="0.1"),
    publisher.release(sf.BinaryPartitioner(depth=3), epsilon="0.1"),
    publisher.release(sf.MultiQuantilePartitioner(fanout=4), epsilon="0.1"),
]
assert_type(partitioners, list[sf.Partition])

# --- answers --------------------------------------------------------------------------------------

assert_type(histogram.values, np.ndarray)
assert_type(histogram.accuracy(0.95, simultaneous=True), np.ndarray)
assert_type(histogram.interval("0.9"), tuple[np.ndarray, np.ndarray])
assert_type(histogram.to_pandas(), pd.DataFrame)
assert_type(histogram.to_polars(), pl.DataFrame)
assert_type(pl.DataFrame(histogram), pl.DataFrame)
assert_type(histogram.guarantee, sf.Guarantee)
assert_type(histogram.receipt, sf.Receipt | None)
assert_type(histogram.mean("age"), sf.Estimate)
assert_type(histogram.marginal("sector"), sf.Estimate)
assert_type(partition.lower, np.ndarray)
assert_type(partition.consistent(integers=True), sf.Partition)
assert_type(partition.count(age=(20, 30), wage=(0, [1000, 2000])), sf.Estimate)
assert_type(partition.sample(100), np.ndarray)
assert_type(clusters.predict([[30, 1500]]), np.ndarray)

loaded = sf.load(histogram.save("histogram.json"))
assert_type(loaded, sf.Release)
if isinstance(loaded, sf.HistogramRelease):
    print(loaded.lattice.names, loaded.cell_names("age"))

# --- before anything is spent ---------------------------------------------------------------------

question = sf.Histogram("age", bins=10)
assert_type(sf.preview(question, domain=domain, unit=people.unit, epsilon="1"), sf.Preview)
foreseen = sf.preview([question], domain=domain, unit=people.unit, epsilon="1")
assert_type(foreseen, PlanPreviews)
previews: tuple[sf.Preview, ...] = foreseen
print(foreseen.choice)
wanted = sf.Plan([question], accuracy={question: sf.Within(20)}, weights={"Histogram of age": 2})
assert_type(publisher.preview(wanted), PlanPreviews)
print(sf.Plan([question], accuracy=20), sf.Plan([question], accuracy=[sf.Within(20)]))
assert_type(publisher.preview(question, epsilon="0.5"), sf.Preview)
assert_type(publisher.preview(sf.Plan([question]), epsilon="0.5"), PlanPreviews)
print(publisher.preview(question, epsilon="0.5").accuracy(simultaneous=True))

window = sf.window(
    question,
    domain=domain,
    unit=people.unit,
    accuracy=sf.Within(20, simultaneous=True),
    risk=sf.Risk(prior=0.01, posterior=0.05),
)
assert_type(window, sf.Window)
choice = sf.choose(np.array([1.0, 2.0, 3.0, 10.0]), size=3, query="mean", risk="1/3")
sf.report([histogram, partition, *several, window], "report.html")

# --- running totals -------------------------------------------------------------------------------

with publisher.open(sf.Counter(horizon=365), epsilon="1", key="visits") as stream:
    assert_type(stream, sf.Stream)
    total = stream.push(20, event="2026-11-20")
    print(total.low, total.high)
    assert_type(stream.history(), sf.CounterRelease)

aggregator = TreeAggregator(GaussianNoiseGenerator(4.0))
noise, state = aggregator.get_cumsum_and_update(aggregator.init_state())

# --- no trusted curator ---------------------------------------------------------------------------

bpm = sf.BPM(epsilon=2, L=0.3, dimension=2)
reports = bpm.perturb(np.zeros((10, 2)))
local = sf.PrivateKMeans(n_clusters=3, epsilon=2.0, L=0.3, random_state=42).fit(np.zeros((100, 2)))
assert_type(local, sf.PrivateKMeans)
assert_type(local.predict(np.zeros((3, 2))), np.ndarray)


# --- a question of one's own ----------------------------------------------------------------------


class TotalRelease(
    sf.Release, frozen=True, kw_only=True, eq=False, tag="total-release", forbid_unknown_fields=True
):
    """How many rows there are."""

    question: Total
    total: int
    law: Law

    @property
    def title(self) -> str:
        return self.question.title

    @property
    def values(self) -> np.ndarray:
        return np.array(self.total)


@register
class Total(sf.Question[TotalRelease], frozen=True, tag="total", forbid_unknown_fields=True):
    """How many rows are there, whatever is in them?"""

    axes: str

    proof: ClassVar[Proof] = Proof(
        sensitivity="L1 = rows_per_person.",
        because="one person moves the number of rows by at most the contribution bound.",
        not_covered="the choice of the column.",
        source="Dwork, McSherry, Nissim, Smith 2006, Thm 1.",
    )

    @property
    def title(self) -> str:
        return "Number of rows"

    def needs(self, domain: sf.Domain) -> Needs:
        return Needs(sf.Histogram(self.axes, bins=2).needs(domain).lattice, numbers=1)

    def preview(
        self, domain: sf.Domain, unit: sf.Unit, cost: CentralMeasure, rows: int | None = None
    ) -> sf.Preview:
        return CountsPreview(self.title, cost, unit, 1, count_law(cost, unit), rows)

    def answer(
        self, counts: Counts, unit: sf.Unit, cost: CentralMeasure, noise: Bits
    ) -> TotalRelease:
        lattice: Lattice = counts.lattice
        law = count_law(cost, unit)
        noisy = add_noise(np.array([counts.on(lattice).total]), law, noise)
        guarantee = sf.Guarantee(
            cost, unit, str(law), self.proof, assumptions_of(unit), private=noise.private
        )
        return TotalRelease(question=self, total=int(noisy[0]), law=law, guarantee=guarantee)


rows = publisher.release(Total("age"), epsilon="0.1")
assert_type(rows, TotalRelease)
assert_type(rows.total, int)
mixed: tuple[sf.Release, ...] = publisher.release(
    [Total("age"), sf.Histogram("age")], epsilon="0.1"
)
