"""What local clustering would cost in accuracy: a table over epsilon and L, on data you may see.

The source's README has such a table: epsilon, L, the sum of squares, and its increase over k-means
without privacy.

``diagnose`` and ``sweep`` show what the source's scripts show: simulated reports beside their law,
and a sweep over L. Everything is simulated on a public point: no person's value is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from sfumato.answers import drawn
from sfumato.basics import Array, Exactly, decimal, positive, several
from sfumato.basics.kmeans import kmeans, sse
from sfumato.errors import UsageError
from sfumato.local.bpm import BPM, centre_reports
from sfumato.local.constants import Floats, variance
from sfumato.local.decoder import check_clusters, decode, spread_evenly
from sfumato.local.mechanism import MultivariateLaplace, read_array
from sfumato.random.bits import current

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --- the table ------------------------------------------------------------------------------------

COLUMNS = ("mechanism", "epsilon", "L", "decoded", "increase", "k-means on reports", "its increase")
AUTO = "auto"
MOST_ROWS = 100


class LocalRow(msgspec.Struct, frozen=True):
    """One mechanism with its parameters, and the sums of squares of the centres from its reports.

    Attributes
    ----------
    mechanism : str
        "BPM", "multivariate Laplace", or "Laplace by axis": epsilon / d on each of d axes.
    epsilon : str
    L : str
        Such as "0.3" or "auto: 2.501"; empty where the mechanism has none.
    decoded : float or None
        Median sum of squares of decoded centres; None where there is no decoder.
    naive : float
        Median sum of squares of k-means on the reports.
    evident : bool
        Whether most reports showed any clusters; if not, decoded centres are spread evenly.
    """

    mechanism: str
    epsilon: str
    L: str
    decoded: float | None
    naive: float
    evident: bool = True


class LocalTable(msgspec.Struct, frozen=True):
    """Sums of squares over epsilon and L.

    Attributes
    ----------
    rows : tuple of LocalRow
    best : float
        Sum of squares of k-means on the true points.
    even : float
        Of centres that are spread evenly over the cube, without data.
    points, dimension, clusters, repeats : int
    """

    rows: tuple[LocalRow, ...]
    best: float
    even: float
    points: int
    dimension: int
    clusters: int
    repeats: int

    def increase(self, value: float | None) -> str:
        """A sum of squares beyond that of k-means on the true points, as text."""
        if value is None:
            return "-"
        return f"{100 * (value / self.best - 1):+,.0f}%" if self.best > 0 else "unlimited"

    def lines(self) -> list[list[str]]:
        """The table as text, in the order of ``COLUMNS``; the last two rows are for comparison."""
        lines = [
            [
                row.mechanism,
                row.epsilon,
                row.L or "-",
                "-" if row.decoded is None else f"{row.decoded:,.4g}",
                self.increase(row.decoded),
                f"{row.naive:,.4g}",
                self.increase(row.naive),
            ]
            for row in self.rows
        ]
        for name, value in (("no data: even centres", self.even), ("no privacy", self.best)):
            lines.append([name, "-", "-", "-", "-", f"{value:,.4g}", self.increase(value)])
        return lines

    def facts(self) -> list[str]:
        """What the table says, in sentences."""
        inside = f"{several(self.dimension, 'dimension')}, {several(self.clusters, 'cluster')}"
        of = f"{several(self.points, 'point')} in {inside}"
        drawn = f"medians of {self.repeats} draws of the noise"
        if self.repeats == 1:
            drawn = "one draw of the noise, and another may order them otherwise (see repeats)"
        facts = [f"{of}; {drawn}."]
        decoded = [row for row in self.rows if row.decoded is not None]
        silent = [row for row in decoded if not row.evident]
        if silent:
            facts.append(
                f"In {len(silent)} of {len(decoded)} settings the reports show no clusters: the "
                "decoded centres are then spread evenly over the cube."
            )
        return facts

    def curves(self) -> dict[str, tuple[Array, Array]]:
        """Epsilons and sums of squares of each mechanism and L."""
        curves: dict[str, list[tuple[float, float]]] = {}
        for row in self.rows:
            name = row.mechanism
            if row.L:
                name += f", L {AUTO}" if row.L.startswith(AUTO) else f", L = {row.L}"
            value = row.naive if row.decoded is None else row.decoded
            curves.setdefault(name, []).append((float(row.epsilon), value))
        return {
            name: (np.array(pairs)[:, 0], np.array(pairs)[:, 1]) for name, pairs in curves.items()
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the sums of squares over epsilon, on a matplotlib Axes."""
        return drawn("local.draw_local_table", self, ax)


def local_table(
    points: np.typing.ArrayLike,
    n_clusters: int,
    *,
    epsilon: Sequence[Exactly],
    L: Sequence[Exactly] = ("auto",),  # noqa: N803
    repeats: int = 1,
    random_state: int | None = 0,
) -> LocalTable:
    """Simulate devices and server for each epsilon and L, on points that you may see.

    Parameters
    ----------
    points : float array of shape (n, d)
        In the unit cube; what lies outside is clamped.
    n_clusters : int
        At most n.
    epsilon : sequence of str, int, Fraction, Decimal or float
        Each above 0.
    L : sequence of the same, or "auto"
    repeats : int
        Draws of the noise, of which medians are taken; from 1 on.
    random_state : int or None
        Seeds the server, never the noise.

    Raises
    ------
    UsageError
        If a parameter is out of range, or there are more than 100 settings.
    Infeasible
        If reports of one of the settings would hardly carry a signal.

    Not covered: its sums of squares are computed from the true points, so they are not private.
    Source: the table of the README of BPM's public code.

    >>> points = np.random.default_rng(0).random((200, 1)) / 4
    >>> table = local_table(points, 1, epsilon=[8, 16])
    >>> [row.epsilon for row in table.rows if row.mechanism == "BPM"]
    ['8', '16']
    """
    given = np.asarray(points)
    if given.ndim != 2 or not given.size:
        raise UsageError(
            f"points of shape {given.shape}",
            "points form a table, one row a person",
            "Give an array of shape (n, d)",
        )
    data_points = np.asarray(np.clip(read_array(given, given.shape[1], "points"), 0, 1))
    k = check_clusters(n_clusters, len(data_points))
    _check(epsilon, L, repeats)
    # All settings are read before the first report: a wrong one is refused at once.
    costs = [positive(cost, "epsilon") for cost in epsilon]
    settings = [setting for cost in costs for setting in _settings(cost, L, data_points.shape[1])]
    rng = np.random.default_rng(random_state)
    return LocalTable(
        rows=tuple(_row(setting, data_points, k, repeats, rng) for setting in settings),
        best=sse(data_points, kmeans(data_points, k, seed=rng, tries=4)),
        even=sse(data_points, spread_evenly(k, data_points.shape[1])),
        points=len(data_points),
        dimension=data_points.shape[1],
        clusters=k,
        repeats=repeats,
    )


class _ByAxis(msgspec.Struct, frozen=True):
    """Laplace noise of epsilon / d on each axis, for comparison only: its floats are not private.

    The distance of two points is at least their mean distance along the axes, so epsilon / d on
    each axis is epsilon in the metric too. Its variance, 2 d^3 / epsilon^2, is what other
    mechanisms avoid.
    """

    epsilon: Fraction
    dimension: int

    def perturb(self, points: Floats) -> Floats:
        noise = np.random.default_rng(current().words(4).tolist())
        scale = self.dimension / float(self.epsilon)
        return points + noise.laplace(scale=scale, size=points.shape)


class _Setting(msgspec.Struct, frozen=True):
    """A mechanism, and how the table names it."""

    made: BPM | MultivariateLaplace | _ByAxis
    name: str
    L: str = ""


def _settings(epsilon: Fraction, radii: Sequence[Exactly], d: int) -> list[_Setting]:
    settings = []
    for length in radii:
        bounded = BPM(epsilon, length, d)
        # Who has no point to report is told all the same whether reports would carry a signal.
        bounded.perturb(np.zeros((0, d)))
        radius = decimal(bounded.L)
        settings.append(_Setting(bounded, "BPM", f"{AUTO}: {radius}" if length == AUTO else radius))
    settings.append(_Setting(MultivariateLaplace(epsilon, d), "multivariate Laplace"))
    settings.append(_Setting(_ByAxis(epsilon, d), "Laplace by axis"))
    return settings


def _row(
    setting: _Setting, points: Floats, k: int, repeats: int, rng: np.random.Generator
) -> LocalRow:
    decoded: list[float] = []
    naive: list[float] = []
    evident = 0
    made = setting.made
    for _ in range(repeats):
        reports = made.perturb(points)
        naive.append(sse(points, kmeans(reports, k, seed=rng, tries=4)))
        if not isinstance(made, _ByAxis):
            decoded_reports = decode(reports, made, k, rng)
            decoded.append(sse(points, decoded_reports.centers))
            evident += decoded_reports.evident
    return LocalRow(
        mechanism=setting.name,
        epsilon=decimal(made.epsilon),
        L=setting.L,
        decoded=float(np.median(decoded)) if decoded else None,
        naive=float(np.median(naive)),
        evident=2 * evident >= len(decoded),
    )


def _check(epsilon: Sequence[Exactly], radii: Sequence[Exactly], repeats: object) -> None:
    for name, values in (("epsilon", epsilon), ("L", radii)):
        if isinstance(values, str) or not len(values):
            raise UsageError(name, "it is a list of values", f"Give {name}=[...]")
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise UsageError("repeats", "they are a whole number from 1 on", "Give 1, or 5")
    if len(epsilon) * (len(radii) + 2) > MOST_ROWS:
        raise UsageError(
            f"{len(epsilon)} epsilons by {len(radii)} values of L",
            f"a table has at most {MOST_ROWS} rows",
            "Give fewer of them",
        )


# --- simulated reports ----------------------------------------------------------------------------


class Diagnosis(msgspec.Struct, frozen=True):
    """Simulated reports of the cube's centre beside what they should show.

    Attributes
    ----------
    reports : int
    inside, expected : float
        Share of the reports within L, and p_L.
    standard_error : float
        Of the share.
    in_space : bool
        Whether all lie in [-L, 1 + L]^d.
    """

    reports: int
    inside: float
    expected: float
    standard_error: float
    in_space: bool

    def __str__(self) -> str:
        all_or_not = "all" if self.in_space else "NOT all"
        return (
            f"{self.reports:,} reports: {100 * self.inside:.2f}% within L, "
            f"{100 * self.expected:.2f}% expected (+-{200 * self.standard_error:.2f}); "
            f"{all_or_not} in the report space"
        )


def diagnose(bpm: BPM, reports: int = 100_000) -> Diagnosis:
    """Draw reports and compare them with the law.

    >>> diagnose(BPM(epsilon=2, L="0.3", dimension=2), 1000).in_space
    True
    """
    drawn = centre_reports(bpm, reports)
    radius = float(bpm.L)
    inside = float((np.linalg.norm(drawn - 0.5, axis=1) <= radius).mean())
    expected = bpm.ball_probability
    standard_error = (expected * (1 - expected) / reports) ** 0.5
    in_space = bool(((drawn >= -radius) & (drawn <= 1 + radius)).all())
    return Diagnosis(reports, inside, expected, standard_error, in_space)


class Sweep(msgspec.Struct, frozen=True):
    """How the mechanism changes with L: parallel tuples.

    Attributes
    ----------
    L, variance, signal, ball : tuple of float
        ``variance`` is that of a debiased report of a corner.
    limit : float
        d (d + 1) / epsilon^2, the variance without bound.
    auto : float
        The L that "auto" takes.
    """

    L: tuple[float, ...]
    variance: tuple[float, ...]
    signal: tuple[float, ...]
    ball: tuple[float, ...]
    limit: float
    auto: float

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it on a matplotlib Axes."""
        return drawn("local.draw_sweep", self, ax)


def sweep(*, epsilon: Exactly, dimension: int, points: int = 40) -> Sweep:
    """Compute the mechanism's figures over a range of L around the automatic one.

    >>> found = sweep(epsilon=2, dimension=2, points=5)
    >>> found.auto
    4.495
    """
    exact = positive(epsilon, "epsilon")
    auto = BPM(exact, "auto", dimension)
    radii = [Fraction(f"{x:.4g}") for x in np.geomspace(0.02, 3, points) * float(auto.L)]
    mechanisms = [BPM(exact, radius, dimension) for radius in radii]
    corner = Decimal(dimension) / 4
    return Sweep(
        L=tuple(map(float, radii)),
        variance=tuple(variance(exact, radius, dimension, corner) for radius in radii),
        signal=tuple(mechanism.signal_probability for mechanism in mechanisms),
        ball=tuple(mechanism.ball_probability for mechanism in mechanisms),
        limit=dimension * (dimension + 1) / float(exact) ** 2,
        auto=float(auto.L),
    )
