"""What the demo asks of the cities of the world: a map, and clusters with trust and without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow.parquet as pq

from sfumato.answers.release import Release
from sfumato.data import source
from sfumato.demo import cities_domain, cities_path
from sfumato.domain.domain import Interval
from sfumato.ledger import Ledger
from sfumato.local.clustering import PrivateKMeans
from sfumato.publishing.publisher import Publisher
from sfumato.questions.clustering import KMeans
from sfumato.questions.partition.adaptive import AutoPartitioner

Progress: TypeAlias = Callable[[int, int | None], None]

EPSILON_OF_MAP = EPSILON_OF_CLUSTERS = "0.5"
EPSILON_OF_REPORTS = "8"
CLUSTERS = 5
EVERY_TENTH = 10
"""One city in ten takes part: so many reports are enough."""
# Degrees, for the devices: the bounds of the public domain.
GLOBE = {"longitude": Interval(-180, 180), "latitude": Interval(-90, 90)}
DEGREES = {"longitude": "degrees", "latitude": "degrees"}


def maps_of_cities(ledger: Ledger, progress: Progress | None) -> list[Release]:
    """Where the cities are, and clusters of them by a trusted curator."""
    cities = source(cities_path(), cities_domain(), name="cities")
    publisher = Publisher(cities, ledger=ledger, account="cities", budget="1")
    axes = ["longitude", "latitude"]
    density = AutoPartitioner(axes, heading="Where the cities are", measured_in=DEGREES)
    clusters = KMeans(CLUSTERS, axes, heading="Clusters of cities", measured_in=DEGREES)
    return [
        publisher.release(density, epsilon=EPSILON_OF_MAP, progress=progress),
        publisher.release(clusters, epsilon=EPSILON_OF_CLUSTERS, progress=progress),
    ]


def clusters_of_devices(path: Path) -> PrivateKMeans:
    """The same clusters without trust: devices of cities report where they are, with noise.

    The reports are kept in a file. A second run reads them, since new ones would cost each city
    epsilon again.
    """
    model = PrivateKMeans(CLUSTERS, epsilon=EPSILON_OF_REPORTS, random_state=1, bounds=GLOBE)
    if path.exists():
        return model.fit_reports(np.load(path, allow_pickle=False))
    columns = pq.read_table(cities_path(), columns=list(GLOBE))
    model.fit(np.column_stack([columns[name].to_numpy()[::EVERY_TENTH] for name in GLOBE]))
    np.save(path, model.reports_)
    return model
