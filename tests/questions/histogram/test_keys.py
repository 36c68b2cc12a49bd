"""Histograms over keys that were not known beforehand: from rows to release."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.audit.runs import Scripted
from sfumato.basics.numbers import sidak
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.data import count
from sfumato.domain.cube import Cube
from sfumato.mechanisms.gaussian_keys import gaussian_key_law
from sfumato.mechanisms.thresholds import key_law, law_of_key_counts, released
from sfumato.questions.histogram.accuracy import histogram_accuracy
from sfumato.random import Bits, PublicSeed, current
from support.canary import overheard, sightings

DOMAIN = sf.Domain(shop=sf.Keys(), kind=sf.Categories(["a", "b"]), at=sf.Interval(0, 3, step=1))
COST = sf.ApproxDP("1", "1e-6")
SHOPS = ["zoo"] * 500 + ["Ärger"] * 300 + ["bar"] * 200 + ["rare"] + [None] * 50


def table(shops: list, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(shops))
    kinds = np.where(np.arange(len(shops)) % 2, "a", "b")
    return pa.table(
        {
            "shop": pa.array([shops[i] for i in order]),
            "kind": kinds,
            "at": np.arange(len(shops)) % 3,
        }
    )


def published(
    question: sf.Histogram, data: object, cost: sf.ApproxDP = COST, **more: object
) -> sf.HistogramRelease:
    src = sf.source(data, DOMAIN, name="shops", **more)
    with sf.Publisher(src, budget=sf.ApproxDP(10, "1e-3")) as publisher:
        return publisher.release(question, epsilon=cost.epsilon, delta=cost.delta)


@pytest.mark.parametrize("selection", ["truncated-geometric", "threshold", "stability"])
def test_keys_that_many_have_are_shown_sorted_with_their_counts(
    selection: str, tmp_path: Path
) -> None:
    release = published(sf.Histogram("shop", selection=selection), table(SHOPS))
    assert release.cell_names("shop") == ["bar", "zoo", "Ärger"]
    low, high = release.interval("0.999999")
    room = (high - low) / 4  # half as wide again: false alarms of 1e-9, since tails are exponential
    assert (low - room <= [200, 500, 300]).all()
    assert (high + room >= [200, 500, 300]).all()
    assert (np.abs(release.values - [200, 500, 300]) <= 1.5 * release.accuracy("0.999999")).all()
    frame = release.to_frame().to_pylist()
    assert [row["shop"] for row in frame] == ["bar", "zoo", "Ärger"]
    assert release.guarantee.measure == COST
    assert release.kept(500) == 1
    for wrong in (2.5, "x", None, [1, 2.0]):
        with pytest.raises(sf.UsageError, match="whole numbers"):
            release.kept(wrong)
    again = sf.load(release.save(tmp_path / "r.json"))
    assert again == release
    assert to_bytes(from_bytes(to_bytes(release), sf.HistogramRelease)) == to_bytes(release)


def test_one_row_for_each_key_and_person_takes_gaussian_noise(tmp_path: Path) -> None:
    """Two hundred riders in each of twenty stops, at most twelve stops each."""
    riders = np.repeat(np.arange(400), 10)
    stops = [f"stop {(rider * 3 + i) % 20}" for rider in range(400) for i in range(10)]
    data = pa.table({"rider": riders, "stop": stops})
    domain = sf.Domain(stop=sf.Keys())
    shown = {}
    for limit in (None, 1):
        src = sf.source(
            data, domain, person="rider", rows_per_person=12, rows_per_cell=limit, name="rides"
        )
        with sf.Publisher(src, budget=COST) as publisher:
            preview = publisher.preview(sf.Histogram("stop"), epsilon="1", delta="1e-6")
            with sf.testing.deterministic(1):
                release = publisher.release(sf.Histogram("stop"), epsilon="1", delta="1e-6")
        assert release.guarantee.measure == COST
        assert str(release.law) in release.guarantee.mechanism
        assert release.law == preview.law
        assert sf.load(release.save(tmp_path / "r.json")) == release
        shown[limit] = release
    gaussian = shown[1]
    assert gaussian.law == gaussian.selection == gaussian_key_law(COST, 12, "add-remove")
    assert "Gaussian noise" in gaussian.guarantee.mechanism
    assert "L2 = sqrt(r)" in gaussian.guarantee.proof.sensitivity
    assert "L1 = rows_per_person" in shown[None].guarantee.proof.sensitivity
    assert gaussian.values.size == 20
    assert (gaussian.accuracy() < shown[None].accuracy().min()).all()
    low, high = gaussian.interval("0.999999")
    assert ((low <= 200) & (high >= 200)).all()
    gaussian.plot().figure.canvas.draw()
    assert "riders" in str(gaussian.guarantee) or "rider" in str(gaussian.guarantee)


def test_beside_other_axes_every_cell_of_a_key_that_is_shown_is_counted() -> None:
    release = published(sf.Histogram(["kind", "shop", "at"]), table(SHOPS))
    assert release.values.shape == (2, 3, 3)
    shops = release.marginal("shop", "0.999999999")
    assert ((shops.low <= [200, 500, 300]) & (shops.high >= [200, 500, 300])).all()
    total = release.total("0.999999999")
    assert total.low <= 1000 <= total.high
    assert shops.value.sum() == total.value == release.values.sum()
    assert "selected" in release.guarantee.mechanism
    assert release.law.scale == 2  # half of epsilon


def test_no_key_may_be_shown_at_all() -> None:
    release = published(sf.Histogram("shop"), table(["a", "b"]))
    assert release.values.shape == (0,)
    assert release.accuracy(simultaneous=True).shape == (0,)
    assert release.to_frame().num_rows == 0
    assert from_bytes(to_bytes(release), sf.HistogramRelease) == release
    both = published(sf.Histogram(["shop", "kind"]), table(["a"]))
    assert both.values.shape == (0, 2)
    assert both.total().value == 0


def test_the_cube_is_the_same_whatever_the_form_and_order(tmp_path: Path) -> None:
    lattice = sf.Histogram(["shop", "kind"]).needs(DOMAIN).lattice
    plain = table(SHOPS)
    coded = plain.set_column(0, "shop", plain["shop"].dictionary_encode())
    wide = plain.set_column(0, "shop", plain["shop"].cast(pa.large_string()))
    view = plain.set_column(0, "shop", plain["shop"].cast(pa.string_view()))
    pq.write_table(plain, tmp_path / "t.parquet", row_group_size=70)
    plain.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    forms = [
        plain,
        coded,
        wide,
        view,
        table(SHOPS, seed=9),
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
        plain.to_pandas(),
    ]
    cubes = [count(sf.source(data, DOMAIN), [lattice])[0] for data in forms]
    truth = Counter(shop for shop in SHOPS if shop is not None)
    for cube in cubes:
        assert cube.keys["shop"].to_pylist() == sorted(truth)
        rows = np.zeros(len(truth), np.int64)
        np.add.at(rows, cube.coordinates[:, 0], cube.counts)
        assert rows.tolist() == [truth[key] for key in sorted(truth)]
    assert all(
        (cube.coordinates == cubes[0].coordinates).all() for cube in cubes if cube is not cubes[4]
    )


def test_many_keys_in_many_batches_and_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more keys than rows in a batch, batches are merged. Persons are bounded all the same."""
    monkeypatch.setattr("sfumato.data.scan.CHUNK_ROWS", 64)
    draw = np.random.default_rng(3)
    keys, who = draw.integers(0, 2000, 5000), draw.integers(0, 700, 5000)
    parts = [
        pa.table({"shop": keys[i : i + 90], "who": who[i : i + 90]}) for i in range(0, 5000, 90)
    ]
    lattice = sf.Histogram("shop").needs(DOMAIN).lattice
    free = count(sf.source(pa.concat_tables(parts), DOMAIN), [lattice])[0]
    truth = Counter(keys.tolist())
    assert dict(zip(free.keys["shop"].to_pylist(), free.counts.tolist(), strict=True)) == dict(
        truth
    )
    bounded = count(
        sf.source(pa.concat_tables(parts), DOMAIN, person="who", rows_per_person=2), [lattice]
    )[0]
    assert bounded.total == sum(min(2, rows) for rows in Counter(who.tolist()).values())
    assert all(
        rows <= truth[key]
        for key, rows in zip(_keys(bounded), bounded.counts.tolist(), strict=True)
    )


def _keys(cube: Cube) -> list:
    return [cube.keys["shop"].to_pylist()[i] for i in cube.coordinates[:, 0]]


def test_cubes_of_parts_add_up() -> None:
    lattice = sf.Histogram(["shop", "kind"]).needs(DOMAIN).lattice
    whole = table(SHOPS)
    one, other, both = (
        count(sf.source(t, DOMAIN), [lattice])[0]
        for t in (whole.slice(0, 400), whole.slice(400), whole)
    )
    summed = one + other
    assert summed.keys["shop"] == both.keys["shop"].to_pylist()
    assert (summed.coordinates == both.coordinates).all()
    assert (summed.counts == both.counts).all()


@pytest.mark.parametrize("values", [[7, 7, -3, None], [True, False, None], ["", "x", "x"]], ids=str)
def test_keys_of_other_types(values: list) -> None:
    release = published(sf.Histogram("shop"), pa.table({"shop": values * 100}))
    assert release.lattice.axes[0].labels == tuple(sorted({v for v in values if v is not None}))


def test_keys_of_a_column_of_another_name() -> None:
    """Also of two axes of keys that read one column."""
    domain = sf.Domain(place=sf.Keys(column="shop"), shop=sf.Keys(), kind=sf.Categories(["a", "b"]))
    source = sf.source(table(SHOPS), domain, name="shops")
    with sf.Publisher(source, budget=sf.ApproxDP(10, "1e-3")) as publisher:
        questions = [sf.Histogram("place"), sf.Histogram(["kind", "place"]), sf.Histogram("shop")]
        releases = publisher.release(questions, epsilon=6, delta="1e-4")
    names = [
        release.cell_names(name)
        for release, name in zip(releases, ("place", "place", "shop"), strict=True)
    ]
    assert names == [["bar", "zoo", "Ärger"]] * 3


def test_text_that_is_not_utf8_is_missing() -> None:
    raw = pa.array([b"ok", b"\xff\xfe", b"ok"] * 60).cast(pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    release = published(sf.Histogram("shop"), pa.table({"shop": text}))
    assert release.lattice.axes[0].labels == ("ok",)


@pytest.mark.parametrize(
    "column",
    [pa.array([1.5]), pa.array([b"x"]), pa.array([2**63], pa.uint64())],
    ids=lambda a: str(a.type),
)
def test_what_is_no_key_is_refused_before_the_charge(column: pa.Array) -> None:
    with sf.Publisher(
        sf.source(pa.table({"shop": column}), DOMAIN), budget=sf.ApproxDP(1, "1e-6")
    ) as publisher:
        with pytest.raises(sf.DataError, match="keys are"):
            publisher.release(sf.Histogram("shop"), epsilon=1, delta="1e-6")
        assert publisher.account.spent == (0, 0)


def test_keys_of_two_types_in_two_files_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"shop": ["a"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"shop": [1]}), tmp_path / "2.parquet")
    with pytest.raises(sf.DataError, match="different types"):
        sf.source(tmp_path, DOMAIN).require([sf.Histogram("shop").needs(DOMAIN).lattice])


def test_what_cannot_be_released_is_refused_before_the_charge() -> None:
    src = sf.source(table(SHOPS), DOMAIN, name="shops")
    with sf.Publisher(src, budget=sf.ApproxDP(1, "1e-3")) as publisher:
        for cost in (
            {"epsilon": 1},
            {"epsilon": "1e-8", "delta": "1e-6"},
            {"epsilon": 1, "delta": "0.6"},
        ):
            with pytest.raises(sf.UsageError):
                publisher.release(sf.Histogram("shop"), **cost)
        assert publisher.account.spent == (0, 0)
    with pytest.raises(sf.UsageError, match="both axes"):
        sf.Histogram(["a", "b"]).needs(sf.Domain(a=sf.Keys(), b=sf.Keys()))
    with pytest.raises(sf.UsageError):
        sf.Histogram("shop", selection="lucky")


def test_sums_over_selected_keys_are_refused() -> None:
    release = published(sf.Histogram("shop"), table(SHOPS))
    for verb in (release.total, release.shares, release.herfindahl, release.mean):
        with pytest.raises(sf.UsageError, match="not shown"):
            verb()


def test_what_is_paid_covers_both_parts() -> None:
    preview = sf.preview(
        sf.Histogram(["shop", "kind"]),
        domain=DOMAIN,
        unit=sf.Unit(),
        epsilon="0.000000003",
        delta="0.4",
    )
    assert preview.cost == sf.ApproxDP("0.000000003", "0.4")


def test_a_key_that_is_not_shown_is_seen_nowhere() -> None:
    """The key of a single person is not in the release, in messages, in prints or in pickles."""
    secret = "canary-8675309"
    data = table([*SHOPS, secret])
    question = sf.Histogram(["shop", "kind"])
    src = sf.source(data, DOMAIN, name="shops")
    cube = count(src, [question.needs(DOMAIN).lattice])[0]
    assert secret in cube.keys["shop"].to_pylist()
    publisher = sf.Publisher(src, budget=sf.ApproxDP(10, "1e-3"))
    release = publisher.release(question, epsilon=1, delta="1e-6")
    assert not sightings(
        secret,
        release,
        release.lattice,
        release.guarantee,
        release.to_frame().to_pylist(),
        cube,
        question,
        src,
    )
    assert not overheard(secret, lambda: question.answer(cube, sf.Unit(), sf.PureDP(1), Scripted()))
    assert not overheard(secret, lambda: cube.on(sf.Histogram("at").needs(DOMAIN).lattice))
    assert str(len(cube.keys["shop"].to_pylist())) not in repr(cube)
    publisher.close()


def test_the_order_of_rows_does_not_show_in_the_draws() -> None:
    """Keys meet their noise in sorted order, whatever the order of the rows."""
    releases = []
    for seed in (1, 2):
        with sf.testing.deterministic("keys"):
            releases.append(published(sf.Histogram("shop"), table(SHOPS, seed)))
    assert releases[0].values.tolist() == releases[1].values.tolist()


COUNTS = np.array([1] * 40 + [3] * 20 + [9, 11, 12, 13, 14, 14, 15, 16, 18, 25, 60])


def held(releases: int, noise: Bits) -> dict[str, tuple[int, int]]:
    """Count how often intervals of keys that were shown hold, singly and for a whole release.

    Most keys are near the threshold.
    """
    law = key_law(sf.ApproxDP("1", "1e-3"), sf.Unit())
    places, values = released(np.tile(COUNTS, releases), law, noise)
    release, truth = places // len(COUNTS), COUNTS[places % len(COUNTS)]
    shown = np.bincount(release, minlength=releases)
    low, high = law.interval(values, 0.05)
    each = int(((low <= truth) & (truth <= high)).sum())
    missed = np.zeros(releases, bool)
    for number in np.unique(shown[shown > 0]):
        some = shown[release] == number
        low, high = law.interval(values[some], sidak(0.05, int(number)))
        missed[release[some][(truth[some] < low) | (truth[some] > high)]] = True
    return {
        "individual": (each, len(values)),
        "simultaneous": (int((~missed[shown > 0]).sum()), int((shown > 0).sum())),
    }


def is_covered(hits: int, trials: int) -> bool:
    return hits / trials >= 0.95 - 4 * (0.95 * 0.05 / trials) ** 0.5


def test_intervals_of_ten_thousand_releases_hold() -> None:
    assert all(is_covered(*found) for found in held(10_000, PublicSeed("keys")).values())


@pytest.mark.deep
def test_intervals_of_a_hundred_thousand_releases_hold(
    evidence: Callable[[str, object], None],
) -> None:
    found = held(100_000, current())
    assert all(is_covered(*each) for each in found.values())
    evidence(
        "coverage_of_keys",
        {name: [hits / trials, trials] for name, (hits, trials) in found.items()},
    )


def test_intervals_that_forget_the_selection_hold_too_seldom() -> None:
    law = key_law(sf.ApproxDP("1", "1e-3"), sf.Unit())
    few = COUNTS[COUNTS < 10]
    places, values = released(np.tile(few, 10_000), law, PublicSeed("keys"))
    half = law.half_width(0.05)
    assert not is_covered(int((np.abs(values - few[places % len(few)]) <= half).sum()), len(values))


def test_a_finer_cube_gives_the_coarser_one_with_its_keys() -> None:
    src = sf.source(table(SHOPS), sf.Domain(shop=sf.Keys(), at=sf.Interval(0, 4)))
    fine, coarse = (
        sf.Histogram(["shop", "at"], bins=bins).needs(src.domain).lattice for bins in (4, 2)
    )
    cube, counted = count(src, [fine])[0].on(coarse), count(src, [coarse])[0]
    assert cube.keys["shop"].to_pylist() == counted.keys["shop"].to_pylist()
    assert (cube.coordinates == counted.coordinates).all()
    assert (cube.counts == counted.counts).all()


def test_the_docstring_holds_the_proof_for_keys() -> None:
    said = " ".join(str(sf.Histogram.__doc__).split())
    assert all(line in said for line in str(sf.Histogram.keys_proof).splitlines())


def test_keys_refuse_to_be_pickled() -> None:
    cube = count(sf.source(table(SHOPS), DOMAIN), [sf.Histogram("shop").needs(DOMAIN).lattice])[0]
    assert cube.keys["shop"][0] == "bar"
    with pytest.raises(sf.UsageError):
        pickle.dumps(cube.keys["shop"])
    assert "bar" not in repr(cube.keys["shop"])


def test_where_no_key_is_shown_there_is_a_picture_without_a_warning() -> None:
    release = published(sf.Histogram("shop"), table([]))
    assert release.values.shape == (0,)
    assert release.plot().get_xlabel() == "count"


def _zipf(keys: int, exponent: float, size: int, rng: np.random.Generator) -> np.ndarray:
    weights = 1 / np.arange(1, keys + 1) ** exponent
    return rng.choice(keys, size, p=weights / weights.sum()).astype(str)


def _tables_of_persons() -> dict[str, pa.Table]:
    """Flights, purchases and words: who holds which key."""
    demo = Path(sf.__file__).parent / "demo" / "flights.parquet"
    flights = pq.read_table(demo, columns=["tailnum", "dest"]).drop_null()
    rng = np.random.default_rng(1)
    bought = np.maximum(1, rng.lognormal(1.5, 1.2, 20_000)).astype(int)
    buyers = np.repeat(np.arange(20_000), bought)
    writers = np.repeat(np.arange(5_000), 30)
    return {
        "flights": flights.rename_columns(["person", "key"]),
        "purchases": pa.table({"person": buyers, "key": _zipf(5_000, 1.1, len(buyers), rng)}),
        "words": pa.table({"person": writers, "key": _zipf(20_000, 1.5, len(writers), rng)}),
    }


@pytest.mark.deep
def test_gains_of_one_row_for_each_key_and_person(
    evidence: Callable[[str, object], None],
) -> None:
    """Keys shown with Gaussian noise, and with the law for any rows on the same counts."""
    figures = []
    for name, table in _tables_of_persons().items():
        for limit in (5, 12):
            src = sf.source(
                table, sf.Domain(key=sf.Keys()), person="person", rows_per_person=limit, name=name
            )
            question = sf.Histogram("key", count="persons")
            unit = src.unit.counting_persons(limit)
            cube = count(src, [question.needs(src.domain)], key=bytes(32))[0]
            laws = {
                "any rows": key_law(COST, unit),
                "one row each": law_of_key_counts(COST, unit),
            }
            kept = {
                what: np.mean([len(released(cube.counts, law, current())[0]) for _ in range(100)])
                for what, law in laws.items()
            }
            figures.append({"table": name, "limit": limit} | kept)
    evidence("gains_of_keys", figures)
    assert all(row["one row each"] > 1.1 * row["any rows"] for row in figures)


@pytest.mark.parametrize("axes", [["shop"], ["shop", "kind"]], ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_a_preview_by_the_stability_rule_counts_the_threshold_in(
    axes: list[str], rows: int
) -> None:
    """Never below the source's formula, nor below what the law of the counts says."""
    preview = sf.Histogram(axes, selection="stability").preview(DOMAIN, sf.Unit(rows), COST)
    for confidence, alpha in (("0.95", 0.05), ("0.999", 0.001)):
        error = preview.accuracy(confidence)
        # A key of a few more rows than the error is shown nearly always.
        assert 1 - float(preview.selects.kept(error + 1)) <= alpha
        # Cells of keys are counted at half of epsilon, and keys selected at the other half.
        formula = histogram_accuracy(
            "stability", epsilon=Fraction(1, len(axes)), delta="1e-6", alpha=str(alpha)
        )
        assert error >= formula
        assert rows > 1 or error <= max(math.ceil(formula), preview.selects.error_bound(alpha) * 2)
    default = sf.Histogram(axes).preview(DOMAIN, sf.Unit(rows), COST)
    assert default.accuracy() < preview.accuracy()
