"""A clip that is chosen from the noisy sums: what it answers, and how far it is from the best."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.release import accuracy_sentence
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.questions.aggregates.clips import Spans, chosen_clips, clipped_weights
from sfumato.questions.aggregates.values import Basis
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
    assert table["lowered_at_most"].to_pylist() == release.lowered_at_most.tolist()
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


DATA: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "lognormal(10, 1)": lambda rng, n: rng.lognormal(10, 1, n),
    "Pareto 1.5 from 10^4": lambda rng, n: 1e4 * (rng.pareto(1.5, n) + 1),
    "uniform 2..6 * 10^4": lambda rng, n: rng.uniform(2e4, 6e4, n),
}
BASIS = Basis("hats", 2**19)


def error_beside_others(
    x: np.ndarray, epsilon: float, rng: np.random.Generator, trials: int
) -> tuple[float, float, float]:
    """Relative errors: of the chosen clip, of the best pair known beforehand, of the bound's."""
    values = np.minimum(x, UPPER)
    mean = values.mean()
    law = DiscreteLaplace(Fraction(BASIS.unity) / Fraction(str(epsilon)))
    true = BASIS.functions(np.rint(values / UPPER * BASIS.points).astype(np.int64)).sum(axis=0)
    noise = np.rint(rng.laplace(0, float(law.scale), (trials, BASIS.size)))
    sums = true + noise
    clips, spans = chosen_clips(sums, BASIS, law, None)
    weights = np.minimum(BASIS.weights, BASIS.weights[clips][:, None])
    held = np.where(spans.hold(BASIS.size), sums, 0)
    means = UPPER * (held * weights).sum(axis=1) / held.sum(axis=1)
    squared_errors = []
    for knot in BASIS.weights[1:] * UPPER:
        clipped = np.minimum(values, knot).mean()
        # A pair's noise, by the delta method; a mean is never further off than half its clip.
        variance = 2 / epsilon**2 * (clipped**2 + (knot - clipped) ** 2) / len(x) ** 2
        squared_errors.append((clipped - mean) ** 2 + min(variance, knot**2 / 4))
    found = [((means - mean) ** 2).mean(), min(squared_errors), squared_errors[-1]]
    chosen, best, declared = np.sqrt(found) / mean
    return float(chosen), float(best), float(declared)


def test_a_chosen_clip_is_nearly_as_good_as_the_best_known_beforehand() -> None:
    rng = np.random.default_rng(4)
    for draw in DATA.values():
        chosen, best, declared = error_beside_others(draw(rng, 10_000), 0.1, rng, 100)
        assert chosen < 5 * best
        assert chosen < 0.4 * declared


@pytest.mark.deep
def test_chosen_clips_reach_their_figures(evidence: Callable[[str, object], None]) -> None:
    """Three laws, 10^3 to 10^5 rows, two epsilons: medians of 24 data sets, 50 releases of each."""
    rng = np.random.default_rng(5)
    rows = []
    for name, draw in DATA.items():
        for n in (10**3, 10**4, 10**5):
            for epsilon in (0.1, 1.0):
                found = [error_beside_others(draw(rng, n), epsilon, rng, 50) for _ in range(24)]
                chosen, best, declared = np.median(found, axis=0).tolist()
                rows.append(
                    {
                        "data": name,
                        "n": n,
                        "epsilon": epsilon,
                        "declared bound": float(f"{declared:.3g}"),
                        "best clip known beforehand": float(f"{best:.3g}"),
                        "chosen clip": float(f"{chosen:.3g}"),
                        "chosen over best": round(chosen / best, 2),
                        "chosen over declared": round(chosen / declared, 3),
                    }
                )
    over_best = [row["chosen over best"] for row in rows]
    over_declared = [row["chosen over declared"] for row in rows]
    figures = {"median": float(np.median(over_best)), "worst": max(over_best)}
    figures["worst over declared"] = max(over_declared)
    evidence("chosen_clips", {"relative errors of means": rows, **figures})
    assert figures["median"] <= 2.5
    assert figures["worst"] <= 4
    assert figures["worst over declared"] <= 1.2


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
