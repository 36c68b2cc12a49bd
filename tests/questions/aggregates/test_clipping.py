"""A clip that is chosen from the noisy sums: what it answers, and how far it is from the best."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from benchmarks.studies.shapes import KINDS, mixture, points
from sfumato.answers.release import accuracy_sentence
from sfumato.demo import cities_path, flights_path
from sfumato.mechanisms.noise import DiscreteLaplace, count_law
from sfumato.privacy import ZCDP, PureDP, Unit
from sfumato.questions.aggregates.clips import Spans, chosen_clips, clipped_weights
from sfumato.questions.aggregates.encoding import _multiplied
from sfumato.questions.aggregates.value_sums import ValueSums
from sfumato.questions.aggregates.values import Basis, Values
from sfumato.random import PublicSeed
from sfumato.testing import deterministic

UPPER = 10**7
ROWS = 3000
WAGES = np.random.default_rng(1).lognormal(10, 1, ROWS)
DOMAIN = sf.Domain(ward=sf.Interval(0, 2, step=1), wage=sf.Interval(0, UPPER))


@pytest.fixture
def wages() -> sf.Publisher:
    table = np.stack([np.arange(ROWS) % 2, WAGES], axis=1)
    return sf.Publisher(sf.source(table, DOMAIN, name="wages"), budget=1000)


def test_a_clip_is_chosen_released_saved_loaded_and_said_in_words(
    wages: sf.Publisher, tmp_path: Path
) -> None:
    with deterministic(1):
        release = wages.release(sf.Mean("wage", clip="auto"), epsilon=1)
    clip = float(release.clips)
    clipped = float(np.minimum(WAGES, clip).mean())
    assert 50_000 < clip < UPPER / 8
    low, high = release.interval()
    assert low <= clipped <= high
    assert float(release.values) == pytest.approx(clipped, rel=0.1)
    beyond_the_next_knot = np.count_nonzero(2 * clip <= WAGES)
    most = int(release.above)
    assert beyond_the_next_knot <= most
    assert most < 60
    assert release.title == f"Mean of wage, each clipped to at most {clip:,.6g}"
    said = str(accuracy_sentence(release))
    assert f"each clipped to at most {clip:,.6g}" in said
    assert f"At most {int(release.above)} of " in said
    assert f"rows lie above {2 * clip:,.6g}." in said
    assert 0 <= WAGES.mean() - clipped <= float(release.lowered_at_most)
    assert "Clipping lowers the mean by about " in said
    again = sf.load(release.save(tmp_path / "r.json"))
    assert again == release
    assert again.clips == release.clips
    assert again.values == release.values


def test_each_group_has_a_clip_of_its_own(wages: sf.Publisher) -> None:
    with deterministic(2):
        release = wages.release(sf.Mean("wage", by="ward", clip="auto"), epsilon=1)
        total = wages.release(sf.Sum("wage", by="ward", clip="auto"), epsilon=1)
    table = release.to_frame()
    assert table["clip"].to_pylist() == release.clips.tolist()
    assert table["above"].to_pylist() == release.above.tolist()
    assert table["lowered"].to_pylist() == release.lowered.tolist()
    assert table["lowered_high"].to_pylist() == release.lowered_at_most.tolist()
    assert table["lowered_low"].to_pylist() == [0, 0]
    assert release.title == "Mean of wage, each clipped, by ward"
    for ward in range(2):
        in_ward = WAGES[ward::2]
        low, high = total.interval()
        clipped = np.minimum(in_ward, total.clips[ward]).sum()
        assert low[ward] <= clipped <= high[ward]
    assert wages.release(sf.Mean("wage", clip=50_000), epsilon=1).above == 0


def _picture_of(release: sf.MeanRelease) -> tuple[str, bool]:
    """What a picture says below, and whether it warns that groups have clips of their own."""
    axes = release.plot()
    note = axes.get_legend().get_title().get_text()
    return axes.get_xlabel(), "by group: groups do not compare" in " ".join(note.split())


def test_a_picture_says_what_is_clipped_and_when_groups_do_not_compare(
    wages: sf.Publisher,
) -> None:
    wage = np.concatenate([np.full(2000, 40.0), np.geomspace(1, UPPER, 2000)])
    table = pa.table({"ward": np.repeat([0, 1], 2000), "wage": wage, "id": np.arange(4000)})
    publisher = sf.Publisher(sf.source(table, DOMAIN, person="id", name="w"), budget=1000)
    with deterministic(3):
        release = publisher.release(sf.Mean("wage", by="ward", clip="auto"), epsilon=10)
        whole = publisher.release(sf.Mean("wage", by="ward"), epsilon=10)
    with deterministic(1):
        alone = wages.release(sf.Mean("wage", clip="auto"), epsilon=1)
    assert release.clips[0] < release.clips[1]
    clipped = "Mean of wage over rows, each clipped (logarithmic scale)"
    assert _picture_of(release) == (clipped, True)
    assert _picture_of(whole) == ("Mean of wage over rows", False)
    clip = f"{float(alone.clips):,.6g}"
    assert alone.plot().get_xlabel() == f"Mean of wage, each clipped to at most {clip}"


def test_only_means_and_sums_choose_a_clip() -> None:
    with pytest.raises(sf.UsageError, match="means and sums only"):
        sf.Variance("wage", clip="auto")


def test_the_preview_says_that_a_clip_is_chosen_and_bounds_the_accuracy(
    wages: sf.Publisher,
) -> None:
    for kind in (sf.Mean, sf.Sum):
        question = kind("wage", clip="auto")
        preview = wages.preview(question, epsilon=1, rows=ROWS)
        release = wages.release(question, epsilon=1)
        assert "a clip is chosen" in str(preview)
        assert release.accuracy() < preview.accuracy()


def test_a_saved_clip_must_be_a_knot(wages: sf.Publisher) -> None:
    release = wages.release(sf.Mean("wage", clip="auto"), epsilon=1)
    fields = {name: getattr(release, name) for name in release.__struct_fields__}
    for false in ([0], [21], [1, 1]):
        with pytest.raises(sf.UsageError, match="clips are not knots"):
            type(release)(**fields | {"knot_indices": np.array(false)})


@pytest.mark.parametrize("points", [2, 3, 100, 1000, 2**19])
def test_weights_give_the_clipped_value_at_every_knot(points: int) -> None:
    basis = Basis("hats", points)
    x = np.unique(np.linspace(0, points, 60).astype(np.int64))
    functions = basis.functions(x)
    for clip in range(1, basis.size):
        found = functions @ clipped_weights(basis, clip) / basis.unity
        assert found == pytest.approx(np.minimum(x, basis.knots[clip]) / points)


# --- how far a chosen clip is from the best -------------------------------------------------------

BASIS = Basis("hats", 2**28)
Draw: TypeAlias = Callable[[np.random.Generator, int], np.ndarray]


def mostly_zeros(share: float, draw: Draw) -> Draw:
    """A law of which this share is 0."""
    return lambda rng, n: np.where(rng.random(n) < share, 0, draw(rng, n))


# Values from 0 to ``UPPER``. The weights of ``clips`` were chosen on the first two families.
PLAIN: dict[str, Draw] = {
    "lognormal(10, 1)": lambda rng, n: rng.lognormal(10, 1, n),
    "lognormal(9, .5)": lambda rng, n: rng.lognormal(9, 0.5, n),
    "lognormal(8, 2)": lambda rng, n: rng.lognormal(8, 2, n),
    "Pareto 1.5 from 10^4": lambda rng, n: 1e4 * (rng.pareto(1.5, n) + 1),
    "Pareto 3 from 5,000": lambda rng, n: 5e3 * (rng.pareto(3, n) + 1),
    "uniform 2..6 * 10^4": lambda rng, n: rng.uniform(2e4, 6e4, n),
    "exponential, 3 * 10^4": lambda rng, n: rng.exponential(3e4, n),
    "gamma(3), 3 * 10^4": lambda rng, n: rng.gamma(3, 1e4, n),
    "normal, 5 * 10^4": lambda rng, n: np.abs(rng.normal(5e4, 1e4, n)),
}
MOSTLY_ZEROS = {
    f"{share:.0%} zeros, {name}": mostly_zeros(share, PLAIN[name])
    for share in (0.6, 0.9, 0.98)
    for name in ("lognormal(10, 1)", "Pareto 1.5 from 10^4")
}
HELD_OUT: dict[str, Draw] = {
    "70% zeros, gamma(2)": mostly_zeros(0.7, lambda rng, n: rng.gamma(2, 2000, n)),
    "95% zeros, gamma(.5)": mostly_zeros(0.95, lambda rng, n: rng.gamma(0.5, 2e5, n)),
    "constant, 7,777": lambda rng, n: np.full(n, 7777.0),
    "two values, 100 and 10^6": lambda rng, n: np.where(rng.random(n) < 0.2, 1e6, 100.0),
    "Weibull(.6)": lambda rng, n: 2e4 * rng.weibull(0.6, n),
    "two lognormal laws": lambda rng, n: rng.lognormal(np.where(rng.random(n) < 0.1, 13, 7), 0.5),
}


def six_shapes(n: int) -> dict[str, np.ndarray]:
    """One axis of each shape, as shares of the declared range."""
    shapes = {kind: points(kind, n)[:, 0] for kind in KINDS}
    shapes |= {f"mixture, {d}-d": (mixture(n, d, 8)[0][:, 0] + 1) / 2 for d in (2, 10)}
    return shapes


def real_columns(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Delays of flights from -60 to 1,440 minutes, and populations up to 40 million, as shares."""
    delays = pq.read_table(flights_path(), columns=["dep_delay"])["dep_delay"].drop_null()
    populations = pq.read_table(cities_path(), columns=["population"])["population"].drop_null()
    return {
        "delays of flights": rng.choice((np.asarray(delays) + 60) / 1500, n),
        "populations of cities": rng.choice(np.asarray(populations) / 4e7, n),
    }


def errors_of_means(
    shares: np.ndarray, epsilon: float, rng: np.random.Generator, trials: int
) -> tuple[float, float, float]:
    """Errors of a mean over the true mean: of the chosen clip, of the best pair, of the bounds'."""
    mean = shares.mean()
    law = DiscreteLaplace(Fraction(BASIS.unity) / Fraction(str(epsilon)))
    true = BASIS.functions(np.rint(shares * BASIS.points).astype(np.int64)).sum(axis=0)
    sums = true + np.rint(rng.laplace(0, float(law.scale), (trials, BASIS.size)))
    clips, spans = chosen_clips(sums, BASIS, law, None)
    weights = np.minimum(BASIS.weights, BASIS.weights[clips][:, None])
    held = np.where(spans.hold(BASIS.size), sums, 0)
    means = (held * weights).sum(axis=1) / held.sum(axis=1)
    squared_errors = []
    for knot in BASIS.weights[1:]:
        clipped = np.minimum(shares, knot).mean()
        # A pair's noise, by the delta method; a mean is never further off than half its clip.
        variance = 2 / epsilon**2 * (clipped**2 + (knot - clipped) ** 2) / len(shares) ** 2
        squared_errors.append((clipped - mean) ** 2 + min(variance, knot**2 / 4))
    found = [((means - mean) ** 2).mean(), min(squared_errors), squared_errors[-1]]
    chosen, best, declared = np.sqrt(found) / mean
    return float(chosen), float(best), float(declared)


def table_of(
    columns: Callable[[np.random.Generator, int], dict[str, np.ndarray]], trials: int
) -> list[dict[str, object]]:
    """The errors of each column at three sizes and two epsilons."""
    rows: list[dict[str, object]] = []
    for n in (10**3, 10**4, 10**5):
        for name, shares in columns(np.random.default_rng(n), n).items():
            for epsilon in (0.1, 1.0):
                rng = np.random.default_rng([n, len(rows)])
                chosen, best, declared = errors_of_means(shares, epsilon, rng, trials)
                rows.append(
                    {
                        "data": name,
                        "n": n,
                        "epsilon": epsilon,
                        "declared bound": float(f"{declared:.3g}"),
                        "best clip known beforehand": float(f"{best:.3g}"),
                        "chosen clip": float(f"{chosen:.3g}"),
                        "chosen over best": float(f"{chosen / best:.3g}"),
                        "chosen over declared": float(f"{chosen / declared:.3g}"),
                    }
                )
    return rows


def drawn_from(laws: dict[str, Draw]) -> Callable[..., dict[str, np.ndarray]]:
    """Columns of these laws, as shares of the range."""
    return lambda rng, n: {name: np.minimum(laws[name](rng, n), UPPER) / UPPER for name in laws}


FAMILIES: dict[str, Callable[[np.random.Generator, int], dict[str, np.ndarray]]] = {
    "plain": drawn_from(PLAIN),
    "mostly zeros": drawn_from(MOSTLY_ZEROS),
    "held out": drawn_from(HELD_OUT),
    "six shapes in their bounds": lambda rng, n: six_shapes(n),
    "real columns": real_columns,
}


def summary(rows: list[dict[str, object]], name: str) -> dict[str, float]:
    """Median, nine of ten and worst of a column of ``table_of``."""
    ratios = np.array([row[name] for row in rows], float)
    ends = np.quantile(ratios, (0.5, 0.9, 1))
    return dict(zip(("median", "nine of ten", "worst"), ends.round(2).tolist(), strict=True))


@pytest.mark.parametrize("name", ["lognormal(10, 1)", "Pareto 1.5 from 10^4"])
@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_a_chosen_clip_is_nearly_as_good_as_the_best_known_beforehand(
    name: str, zeros: float
) -> None:
    rng = np.random.default_rng(4)
    shares = np.minimum(mostly_zeros(zeros, PLAIN[name])(rng, 10_000), UPPER) / UPPER
    chosen, best, declared = errors_of_means(shares, 0.1, rng, 100)
    assert chosen < 4 * best
    assert chosen < 0.4 * declared


@pytest.mark.deep
def test_chosen_clips_reach_their_figures(evidence: Callable[[str, object], None]) -> None:
    """23 columns, 10^3 to 10^5 rows, two epsilons: 100 releases of each."""
    tables = {family: table_of(columns, 100) for family, columns in FAMILIES.items()}
    figures = {
        family: {name: summary(rows, name) for name in ("chosen over best", "chosen over declared")}
        for family, rows in tables.items()
    }
    evidence("chosen_clips", {"figures": figures, "relative errors of means": tables})
    assert figures["plain"]["chosen over best"]["median"] <= 1.67
    assert figures["mostly zeros"]["chosen over best"]["worst"] <= 8
    assert figures["held out"]["chosen over best"]["median"] <= 2
    # Heavy tails with many rows, where the declared bound is hardly worse than the best clip.
    for family in ("plain", "mostly zeros", "held out", "real columns"):
        assert figures[family]["chosen over declared"]["worst"] <= 1.6


# --- intervals ------------------------------------------------------------------------------------

COLUMNS: dict[str, tuple[float, float, Draw]] = {
    "lognormal": (0, UPPER, PLAIN["lognormal(10, 1)"]),
    "Pareto": (0, UPPER, PLAIN["Pareto 1.5 from 10^4"]),
    "in its bounds": (0, 100, lambda rng, n: rng.uniform(0, 100, n)),
    "90% zeros": (0, UPPER, mostly_zeros(0.9, PLAIN["lognormal(10, 1)"])),
    "zeros inside the range": (-100, 1000, mostly_zeros(0.9, lambda rng, n: rng.gamma(2, 20, n))),
    "negative": (-1000, 0, lambda rng, n: -rng.gamma(2, 20, n)),
    "on both sides": (-(10**6), 10**6, lambda rng, n: rng.normal(-50, 300, n)),
    "constant": (0, 10**4, lambda rng, n: np.full(n, 42.0)),
}
LAWS = {
    "epsilon": count_law(PureDP(Fraction(1, 2)), Unit()),
    "rho": count_law(ZCDP(Fraction(1, 8)), Unit()),
    "replace, 3 rows a person": count_law(PureDP(Fraction(1)), Unit(3, neighbours="replace")),
}


def coverages(column: str, law_name: str, n: int, releases: int) -> dict[str, float]:
    """How often intervals hold in a grouped column: releases are groups of equal rows."""
    lower, upper, draw = COLUMNS[column]
    values = np.clip(draw(np.random.default_rng(n), n), lower, upper)
    scale = Values("x", float(lower), float(upper), BASIS.points, True)
    at = np.rint((values - lower) / scale.width * BASIS.points).astype(np.int64)
    law = _multiplied(LAWS[law_name], BASIS.unity)
    noise = law.sample(releases * BASIS.size, PublicSeed(f"{column} {law_name} {n}"))
    released = np.tile(BASIS.functions(at).sum(axis=0), releases) + noise
    sums = released.reshape(releases, -1).astype(float)
    held = {}
    for kind, centre in (("mean", None), ("sum", -lower / scale.width)):
        clips, spans = chosen_clips(sums, BASIS, law, centre)
        answer = ValueSums(scale, BASIS, released, law, clips, spans)
        whole = values.sum() if kind == "sum" else values.mean()
        clipped = np.minimum(values[:, None], answer.clips)
        truth = clipped.sum(axis=0) if kind == "sum" else clipped.mean(axis=0)
        interval = answer.sum_interval if kind == "sum" else answer.mean_interval
        taken = answer.taken_from_sums if kind == "sum" else answer.taken_from_means
        low, high = interval(0.05)
        most = np.nan_to_num(taken(0.05)[1], nan=np.inf)
        held[kind] = float(((low <= truth) & (truth <= high)).mean())
        rounded = 1e-9 * max(abs(whole), 1.0)  # floating point, where nothing is clipped
        held[f"{kind}, lowered at most"] = float((whole - truth <= most + rounded).mean())
    return held


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("column", ["Pareto", "zeros inside the range", "on both sides"])
def test_intervals_hold_for_the_clip_that_was_chosen(column: str, law: str) -> None:
    releases = 100
    for held in coverages(column, law, 300, releases).values():
        assert held >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / releases)


@pytest.mark.deep
@pytest.mark.parametrize("law", LAWS)
def test_coverage_of_intervals_at_chosen_clips(
    law: str, evidence: Callable[[str, object], None]
) -> None:
    releases = 400
    figures = {
        f"{column}, {n} rows": coverages(column, law, n, releases)
        for column in COLUMNS
        for n in (5, 100, 5000)
    }
    name = law.split(",", maxsplit=1)[0]
    evidence(f"coverage_of_columns_at_chosen_clips_{name}", {"releases": releases, **figures})
    least = min(share for held in figures.values() for share in held.values())
    assert least >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / releases)


@pytest.mark.parametrize("centre", [None, 0.0, 0.1])
def test_each_group_gets_the_clip_that_it_gets_alone(centre: float | None) -> None:
    basis = Basis("hats", 2**20)
    random = np.random.default_rng(6)
    law = DiscreteLaplace(10 * basis.unity)
    rows = random.integers(1, 3000, (70, 1)) * random.dirichlet(
        np.geomspace(5, 0.01, basis.size), 70
    )
    sums = np.round(basis.unity * (rows + random.laplace(0, 10, rows.shape)))
    clips, spans = chosen_clips(sums, basis, law, centre)
    assert len(np.unique(clips)) > 1
    for group in range(70):
        clip, span = chosen_clips(sums[group : group + 1], basis, law, centre)
        assert clip == clips[group]
        assert (span.first, span.last) == (spans.first[group], spans.last[group])


# --- what the release says ------------------------------------------------------------------------


def released(values: np.ndarray, domain: sf.Domain, kind: type = sf.Mean) -> Any:
    """The answer about a column with a chosen clip, at epsilon 1."""
    publisher = sf.Publisher(sf.source(values[:, None], domain, name="x"), budget=1000)
    with deterministic(8):
        return publisher.release(kind("x", clip="auto"), epsilon=1)


def test_an_answer_of_the_version_before_keeps_its_value_and_its_statement(
    wages: sf.Publisher,
) -> None:
    with deterministic(1):
        release = wages.release(sf.Mean("wage", clip="auto"), epsilon=1)
    before = msgspec.structs.replace(release, spans=msgspec.UNSET)
    sums = before.released.astype(float)
    weights = clipped_weights(before.basis, int(before.knot_indices[0]))
    assert float(before.values) == pytest.approx(UPPER * (sums @ weights) / sums.sum())
    assert float(before.values) != float(release.values)
    assert before.interval() == release.interval()
    assert before.unknowns.startswith("At most ")
    assert "lowers" not in before.unknowns
    assert "lowered" not in before.to_frame().column_names
    assert np.isnan(before.lowered)
    assert np.isnan(before.lowered_at_most)


def test_spans_that_no_release_has_are_refused(wages: sf.Publisher) -> None:
    release = wages.release(sf.Mean("wage", clip="auto"), epsilon=1)
    assert isinstance(release.spans, Spans)
    clip = release.knot_indices
    for first, last in ((clip, clip), (clip - 1, clip - 1), (clip[:0], clip[:0])):
        spans = Spans(first, last, release.spans.taken)
        with pytest.raises(sf.UsageError, match="clips are not knots"):
            msgspec.structs.replace(release, spans=spans)


def test_values_up_to_the_bound_are_not_clipped_and_the_release_says_so() -> None:
    values = np.random.default_rng(2).uniform(0, 100, 3000)
    release = released(values, sf.Domain(x=sf.Interval(0, 100)))
    assert release.title == "Mean of x"
    assert release.unknowns == "No value is clipped below the upper bound."
    assert "clipped to" not in release.about


@pytest.mark.parametrize("kind", [sf.Mean, sf.Sum])
@pytest.mark.parametrize(
    "values",
    [np.full(500, 7.0), np.repeat([3.0, 90.0], 300), np.full(400, np.nan), np.zeros(300)],
    ids=["one value", "two values", "NaN alone", "zeros"],
)
def test_columns_of_few_values_have_intervals_that_hold(values: np.ndarray, kind: type) -> None:
    release = released(values, sf.Domain(x=sf.Interval(0, 100)), kind)
    numbers = values[~np.isnan(values)]
    low, high = release.interval()
    if kind is sf.Sum:
        assert low <= np.minimum(numbers, release.clips).sum() <= high
        assert 0 <= (numbers - np.minimum(numbers, release.clips)).sum() <= release.lowered_at_most
    elif len(numbers):
        assert low <= np.minimum(numbers, release.clips).mean() <= high
    else:
        # Of no rows there is no mean: nothing is clipped, and nothing is known.
        assert np.isnan(release.values)
        assert (low, high, release.clips) == (0, 100, 100)
