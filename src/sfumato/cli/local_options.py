"""What the commands of ``sfumato local`` share: their options, and how clusters are printed."""

from __future__ import annotations

from typing import TypeAlias

import click
import msgspec
import numpy as np

from sfumato.cli.option_types import INTEGER
from sfumato.cli.output import emit_json, table, talk
from sfumato.cli.parsing import parse_axes
from sfumato.domain.domain import Domain
from sfumato.local.bpm import BPM
from sfumato.local.client import from_unit, read_bounds
from sfumato.local.decoder import Decoded
from sfumato.local.mechanism import MultivariateLaplace

Mechanism: TypeAlias = BPM | MultivariateLaplace

AXES = click.option(
    "--axis",
    "axes",
    multiple=True,
    required=True,
    help="Value of a person with its public bounds: NAME=LOW..HIGH. Repeat for each value.",
)
EPSILON = click.option(
    "--epsilon",
    required=True,
    help="Privacy cost to each person: the privacy loss between two points at distance 1, "
    "with every axis scaled to 0 .. 1.",
)
REACH = click.option(
    "--reach",
    "--radius",
    "reach",
    default="auto",
    show_default=True,
    help="Parameter L of the mechanism bpm: the radius of the ball around a point in which its "
    "report is more likely, with every axis scaled to 0 .. 1; auto chooses it from epsilon.",
)
MECHANISM = click.option(
    "--mechanism",
    type=click.Choice(["bpm", "laplace"]),
    default="bpm",
    show_default=True,
    help="How a point is perturbed: bounded perturbation mechanism, or multivariate Laplace noise.",
)
CLUSTERS = click.option("--clusters", type=INTEGER, required=True, help="Number of clusters.")
SEED = click.option(
    "--seed",
    type=INTEGER,
    default=0,
    show_default=True,
    help="Seed of the search for clusters, which sees reports only. Noise never has a seed.",
)


class MechanismSettings(msgspec.Struct, frozen=True):
    """The mechanism that the devices use, as far as the command line names it."""

    axes: tuple[str, ...]
    epsilon: str | None
    reach: str
    mechanism: str

    def domain(self) -> Domain:
        """The public axes, all of them Intervals."""
        domain = Domain(parse_axes(self.axes))
        domain.intervals(list(domain))
        return domain

    def made(self) -> Mechanism:
        """The mechanism, with a dimension for each axis; --epsilon is given."""
        assert self.epsilon is not None
        dimension = len(self.axes)
        if self.mechanism == "laplace":
            return MultivariateLaplace(self.epsilon, dimension)
        return BPM(self.epsilon, self.reach, dimension)


def show_clusters(
    decoded: Decoded, domain: Domain, as_json: bool, figures: dict[str, object]
) -> None:
    """Print clusters in the units of the axes; with --json, further figures beside them."""
    bounds = read_bounds(domain.intervals(None), len(domain))
    centers = from_unit(decoded.centers, bounds)
    half_widths = decoded.half_widths(0.95) * (bounds[:, 1] - bounds[:, 0])
    if as_json:
        found = {
            "axes": list(domain),
            "centers": centers,
            "half_widths": half_widths,
            "weights": decoded.weights,
            "in_model": decoded.in_model,
            "evident": decoded.evident,
        }
        emit_json(found | figures)
        return
    columns = ["share"]
    for name in domain:
        columns += [name, "+-"]
    rows = []
    for weight, center, half_width in zip(decoded.weights, centers, half_widths, strict=True):
        numbers = np.stack([center, half_width], axis=1).ravel()
        rows.append([round(float(weight), 4), *[float(f"{number:.4g}") for number in numbers]])
    table(columns, rows, "Clusters, by share; +- is a 95% interval")
    if not decoded.evident:
        talk("The reports do not show where clusters are: these centres are spread evenly.")
    if not decoded.in_model:
        talk(
            "The reports do not look like those of that many round clusters: +- is wider for that, "
            "and its 95% is not proved."
        )
