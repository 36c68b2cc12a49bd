"""Releases of one account, and the fields that the registry has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import sfumato as sf

AT = np.arange(600)
ROWS = pa.table(
    {
        "age": (AT * 7 % 90).astype(float),
        "ward": [["A", "B", "C"][i % 3] for i in AT],
        "shop": [f"shop {i % 4}" for i in AT],
        "who": AT // 3,
    }
)
DOMAIN = sf.Domain(
    age=sf.Interval(0, 120, step=1), ward=sf.Categories(["A", "B", "C"]), shop=sf.Keys()
)
NAME = "visits-2026"
FACTS = {
    "data_curators": ["City hospital"],
    "intended_use": "To plan wards",
    "data_product_region": "Exampleland",
    "data_product_sector": "Health",
    "registry_authors": "A. Author",
}


def source(limit: int = 3) -> sf.Source:
    """The table, with a limit on the rows of each person."""
    return sf.source(ROWS, DOMAIN, person="who", rows_per_person=limit, name=NAME)


def published(folder: Path) -> list[sf.Release]:
    """A plan of three answers, and one about keys, by one account of a ledger in the folder."""
    budget = sf.ApproxDP("4", "1e-5")
    with sf.Publisher(source(), ledger=folder / "b.db", account="a", budget=budget) as publisher:
        plan = [sf.Histogram(["ward", "age"], bins=4), sf.Mean("age"), sf.Persons(most_rows=10)]
        several = publisher.release(plan, epsilon="1")
        shops = publisher.release(sf.Histogram("shop"), epsilon="1", delta="1e-6")
    return [*several, shops]


def every_leaf(tree: dict[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    """All values with their places."""
    for name, value in tree.items():
        place = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            yield from every_leaf(value, place)
        else:
            yield place, value


MEASURES = ("Pure DP", "Approximate DP", "Zero-concentrated DP")

# Each field with its type, or the values that it may have.
REGISTRY: dict[str, type | tuple[object, ...]] = {
    "url_slug": str,
    "status": ("Draft",),
    "tier": (3,),
    "deployment.product.name": str,
    "deployment.product.data_curators": list,
    "deployment.product.intended_use": str,
    "deployment.product.data_product_type": ("Summary statistics",),
    "deployment.product.data_product_region": str,
    "deployment.product.data_product_sector": str,
    "deployment.product.description": str,
    "deployment.product.publication_date": str,
    "deployment.dp_flavor.name": MEASURES,
    "deployment.dp_flavor.input_metric": str,
    "deployment.dp_flavor.bound_on_input_distance": str,
    "deployment.dp_flavor.output_measure": str,
    "deployment.dp_flavor.bound_on_output_distance": str,
    "deployment.dp_flavor.data_domain": str,
    "deployment.dp_flavor.unprotected_quantities": str,
    "deployment.privacy_loss.privacy_unit": str,
    "deployment.privacy_loss.privacy_unit_description": str,
    "deployment.privacy_loss.privacy_parameters_description": str,
    "deployment.model.model_name": ("Central", "Local"),
    "deployment.model.model_name_description": str,
    "deployment.model.actors": str,
    "deployment.model.release_type": ("One release", "Many releases"),
    "deployment.model.release_type_description": str,
    "deployment.model.data_source_type": ("Static", "Dynamic"),
    "deployment.model.data_source_type_description": str,
    "deployment.model.access_type": ("Non-interactive",),
    "deployment.model.access_type_description": str,
    "deployment.accounting.post_processing": str,
    "deployment.accounting.composition": str,
    "deployment.implementation.pre_processing_eda_hyperparameter_tuning": str,
    "deployment.implementation.mechanisms": str,
    "deployment.implementation.justification": str,
    "deployment.resources.sources": str,
    "deployment.resources.registry_authors": list,
}
PARAMETERS = {
    "Pure DP": {"epsilon"},
    "Approximate DP": {"epsilon", "delta"},
    "Zero-concentrated DP": {"rho"},
}
OPTIONAL = {"deployment.accounting.auditing"}


def require_entry(entry: dict[str, object]) -> None:
    """Compare an entry with the registry's fields: none is missing, and none is unknown."""
    found = dict(every_leaf(entry))
    numbers = {
        place.rpartition(".")[2]: found.pop(place)
        for place in list(found)
        if ".privacy_parameters." in place
    }
    assert set(numbers) == PARAMETERS[str(found["deployment.dp_flavor.name"])]
    assert all(isinstance(number, int | float) and number > 0 for number in numbers.values())
    assert set(found) - OPTIONAL == set(REGISTRY)
    for place, allowed in REGISTRY.items():
        value = found[place]
        if isinstance(allowed, type):
            assert isinstance(value, allowed), place
            assert value, place
        else:
            assert value in allowed, place
