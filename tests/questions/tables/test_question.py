"""Tables are asked for, answered, and add up."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data import count
from sfumato.errors import InternalError
from sfumato.publishing.counting import ReleaseCounts
from sfumato.random import PublicSeed
from sfumato.testing import deterministic

ROWS = 400
DOMAIN = sf.Domain(
    hour=sf.Interval(0, 24, step=1),
    carrier=sf.Categories(["AA", "DL", "UA"]),
    origin=sf.Categories(["EWR", "JFK"]),
    month=sf.Interval(1, 13, step=1),
    tail=sf.Keys(),
)
FAMILY = [["carrier", "hour"], ["carrier", "origin"], ["month", "origin"], "origin"]
COSTS = {"epsilon": "1"}, {"rho": "0.125"}, {"epsilon": "1", "delta": "1e-6"}


def flights() -> dict[str, list]:
    rng = np.random.default_rng(7)
    return {
        "hour": rng.integers(0, 24, ROWS).tolist(),
        "carrier": rng.choice(["AA", "DL", "UA", "??"], ROWS).tolist(),
        "origin": rng.choice(["EWR", "JFK"], ROWS).tolist(),
        "month": rng.integers(1, 13, ROWS).tolist(),
        "plane": rng.integers(0, 150, ROWS).tolist(),
    }


def source(**more: object) -> sf.Source:
    domain = sf.Domain(**{name: DOMAIN[name] for name in DOMAIN if name != "tail"})
    return sf.source(pa.table(flights()), domain, name="flights", **more)


def released(question: sf.Tables, cost: dict, **more: object) -> sf.TablesRelease:
    budget = sf.ZCDP(10**5) if "rho" in cost else sf.ApproxDP(10**6, "0.1")
    with deterministic(3), sf.Publisher(source(**more), budget=budget) as publisher:
        return publisher.release(question, **cost)


def truth() -> dict[tuple[str, ...], np.ndarray]:
    rows = flights()
    kept = [at for at in range(ROWS) if rows["carrier"][at] != "??"]
    cells = {
        "hour": [rows["hour"][at] for at in kept],
        "carrier": [["AA", "DL", "UA"].index(rows["carrier"][at]) for at in kept],
        "origin": [["EWR", "JFK"].index(rows["origin"][at]) for at in kept],
        "month": [rows["month"][at] - 1 for at in kept],
    }
    sizes = {"hour": 24, "carrier": 3, "origin": 2, "month": 12}
    found = {}
    for size in range(3):
        for axes in itertools.permutations(sizes, size):
            table = np.zeros([sizes[name] for name in axes], np.int64)
            np.add.at(table, tuple(cells[name] for name in axes), 1)
            found[axes] = table if axes else np.array(len(kept))
    return found


@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_tables_agree_in_common_margins(cost: dict) -> None:
    release = released(sf.Tables(FAMILY), cost, person="plane", rows_per_person=2)
    for one, other in itertools.combinations(release.tables, 2):
        common = [name for name in one if name in other]
        sums = []
        for table in (one, other):
            dropped = tuple(at for at, name in enumerate(table) if name not in common)
            sums.append(release[table].values.sum(axis=dropped))
        first = [name for name in one if name in common]
        assert np.allclose(sums[0], release[first].values, rtol=0, atol=1e-9)
        assert np.allclose(sums[1], release[common].values, rtol=0, atol=1e-9)
    assert np.isclose(release["hour"].values.sum(), release[()].values, rtol=0, atol=1e-9)


@pytest.mark.parametrize("cost", [{"epsilon": 10**5}, {"rho": 10**4}], ids=str)
def test_with_next_to_no_noise_they_are_the_counts_of_rows_with_a_cell_on_every_axis(
    cost: dict,
) -> None:
    release = released(sf.Tables(FAMILY), cost)
    for axes, counts in truth().items():
        if any(set(axes) <= set(table) for table in release.tables):
            assert np.abs(release[axes].values - counts).max() < 0.5
            assert release[axes].values.shape == counts.shape


@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_the_family_is_its_tables_one_after_another(cost: dict, tmp_path: Path) -> None:
    release = released(sf.Tables(FAMILY, heading="Flights"), cost)
    values = [release[table].values.reshape(-1) for table in release.tables]
    assert np.array_equal(release.values, np.concatenate(values))
    frame = release.to_frame()
    assert frame.num_rows == release.values.size == 72 + 6 + 24 + 2
    assert frame.column_names[0] == "table"
    assert frame["table"].to_pylist()[-1] == "origin"
    assert frame["hour"].null_count == 6 + 24 + 2
    one = release["hour", "carrier"]
    assert np.array_equal(one.values.T, release["carrier", "hour"].values)
    assert one.to_frame().column_names[-3:] == ["count", "low", "high"]
    loaded = sf.load(one.save(tmp_path / "one.json"))
    assert loaded == one
    assert np.array_equal(loaded.values, one.values)
    assert one.title == "Table of hour x carrier"
    assert one.guarantee == release.guarantee


def test_equal_weights_are_another_question_than_none() -> None:
    """Without weights, margins that nobody asked for count a little: the noise is another."""
    tables = [["carrier", "hour"], ["carrier", "origin"]]
    plain, weighted = sf.Tables(tables, bins=2), sf.Tables(tables, bins=2, weights=[1, 1])
    with sf.Publisher(source(), budget=sf.ZCDP("1")) as publisher:
        first = publisher.release(plain, rho="0.125")
        second = publisher.release(weighted, rho="0.125")
    assert first.measured != second.measured
    assert not second.replayed


def test_the_same_tables_in_another_order_are_paid_for_once() -> None:
    with sf.Publisher(source(), budget="1") as publisher:
        first = publisher.release(sf.Tables(FAMILY, weights=[1, 1, 1, 2]), epsilon="1")
        turned = [["origin"], ["hour", "carrier"], ["origin", "carrier"], ["month", "origin"]]
        again = publisher.release(sf.Tables(turned, weights=[2, 1, 1, 1]), epsilon="1")
        assert again.replayed
        assert np.array_equal(again["hour"].values, first["hour"].values)


BAD = {
    "no list": ("carrier", {}, "it must be a list of tables"),
    "none": ([], {}, "it must be a list of tables"),
    "the total alone": ([[]], {}, "nothing says which rows are counted"),
    "a table twice": ([["a", "b"], ["b", "a"]], {}, "asked for twice"),
    "an axis twice": ([["a", "a"]], {}, "an axis twice"),
    "both aims": ([["a"]], {"weights": [1], "accuracy": 3}, "weights with accuracy"),
    "too few weights": ([["a"], ["a", "b"]], {"weights": [1]}, "there are 2 tables"),
    "a weight of 0": ([["a"]], {"weights": [0]}, "weights"),
    "no number": ([["a"]], {"weights": [None]}, "not a number"),
    "a huge weight": ([["a"]], {"weights": ["1e300"]}, "10\\^12"),
    "a weight for a number": ([["a"]], {"weights": 3}, "a list with a number for each"),
    "many margins": ([[f"a{i}" for i in range(13)]], {}, "4,096 sums over some of their axes"),
    "many tables": ([[f"a{i}", "b"] for i in range(2000)], {}, "1,024 tables"),
}


@pytest.mark.parametrize(("tables", "more", "said"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_asked(tables: object, more: dict, said: str) -> None:
    with pytest.raises(sf.UsageError, match=said):
        sf.Tables(tables, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("tables", [[["hour", "month"], ["origin", "carrier"]], ["hour", "month"]])
def test_tables_have_axes_in_common(tables: list) -> None:
    with pytest.raises(sf.UsageError, match="no axis in common"):
        sf.Tables(tables).needs(DOMAIN)


def test_what_does_not_fit_the_domain() -> None:
    with pytest.raises(sf.UsageError, match="keys of 'tail'"):
        sf.Tables([["tail", "hour"]]).needs(DOMAIN)
    with pytest.raises(sf.UsageError, match="no axis of that name"):
        sf.Tables([["hours", "origin"]]).needs(DOMAIN)
    with pytest.raises(sf.UsageError, match="column of that name"):
        sf.Tables(["table"]).needs(sf.Domain(table=sf.Categories(["a"])))
    big = sf.Tables([["hour", "month"]], bins={"hour": 2**13, "month": 2**13})
    with pytest.raises(sf.UsageError, match="cells, and the limit is"):
        big.needs(DOMAIN)
    for limits in ({"rows_per_cell": 1}, {"cells_per_person": 2, "norm_per_person": 2}):
        unit = source(person="plane", rows_per_person=4, **limits).unit
        with pytest.raises(sf.UsageError, match="limits by cell"):
            sf.preview(sf.Tables(FAMILY), domain=DOMAIN, unit=unit, rho="0.1")
    unit = source(person="plane", norm_per_person=2**20 + 1).unit
    with pytest.raises(sf.UsageError, match="largest limit on a norm is 1,048,576"):
        sf.preview(sf.Tables(FAMILY), domain=DOMAIN, unit=unit, rho="0.1")


def test_a_margin_that_no_table_covers() -> None:
    release = released(sf.Tables(FAMILY), {"epsilon": "1"})
    with pytest.raises(sf.UsageError, match="no table has all of these axes"):
        release["hour", "origin"]
    with pytest.raises(sf.UsageError, match="no table has an axis of that name"):
        release["hours"]
    with pytest.raises(sf.UsageError, match="names an axis twice"):
        release["hour", "hour"]


def test_a_preview_says_what_the_release_will() -> None:
    question = sf.Tables(FAMILY, accuracy=[10, 20, 10, 40])
    for cost in COSTS:
        preview = sf.preview(question, domain=source().domain, unit=source().unit, **cost)
        release = released(question, cost)
        for at, table in enumerate(release.tables):
            assert np.isclose(preview.accuracy_of(at), release[table].accuracy().max())
        assert np.isclose(preview.accuracy("0.9", True), release.accuracy("0.9", True).max())
        assert "+-" in str(preview)
        assert release.guarantee.measure == preview.cost


def test_answers_from_a_sparse_cube_are_those_from_a_dense_one() -> None:
    from sfumato.domain.cube import Cube
    from sfumato.domain.lattice import LabelAxis, Lattice
    from sfumato.questions.tables.levels import Chains

    rng = np.random.default_rng(1)
    lattice = Lattice(tuple(LabelAxis(name, tuple("abcd")) for name in "xyz"))
    cells = rng.integers(0, 4, (50, 3))
    dense = Cube.of_cells(lattice, cells)
    sparse = Cube._sparse(lattice, cells, np.ones((50, 1), np.int64))
    margins = list(itertools.product((0, 1), repeat=3))
    chains = Chains.of(lattice)
    of_all = chains.counts(sparse, margins)
    for margin in margins:
        alone = chains.counts(dense, [margin])[margin]
        assert np.array_equal(alone, chains.counts(sparse, [margin])[margin])
        assert np.array_equal(alone, of_all[margin])


def test_noise_follows_the_seed() -> None:
    from sfumato.audit.runs import count
    from sfumato.privacy.measures import PureDP

    question = sf.Tables(["x"])
    domain = sf.Domain(x=sf.Interval(0, 3, step=1))
    counts = count(((0.5,), (1.0,)), question.needs(domain).lattice)
    one, two = (
        question.answer(counts, sf.Unit(), PureDP(1), PublicSeed(seed)).numbers() for seed in (1, 2)
    )
    assert one != two


def test_the_stored_form() -> None:
    """What is stored is read back by every later version."""
    import msgspec

    from sfumato.basics.structs import to_bytes

    question = sf.Tables([["carrier", "origin"], "origin"], weights=[1, "0.5"])
    assert to_bytes(question) == (
        b'{"type":"tables","tables":[["carrier","origin"],["origin"]],"weights":[1.0,0.5]}'
    )
    assert to_bytes(sf.Tables(["origin"])) == b'{"type":"tables","tables":[["origin"]]}'
    stored = msgspec.json.decode(to_bytes(released(question, {"rho": "0.5"})))
    assert stored["type"] == "tables-release"
    assert stored["tables"] == [["carrier", "origin"], ["origin"]]
    # Axes stand in the order of the domain; of a residual there are (3 - 1) (2 - 1) numbers.
    assert [axis["name"] for axis in stored["lattice"]["axes"]] == ["carrier", "origin"]
    assert [each["margin"] for each in stored["measured"]] == [[0, 0], [1, 0], [0, 1], [1, 1]]
    assert all(each["whole"] is False for each in stored["measured"])
    assert all(each["law"]["type"] == "discrete-gaussian" for each in stored["measured"])
    assert len(stored["noisy"]) == 1 + 2 + 1 + 2
    whole = msgspec.json.decode(to_bytes(released(question, {"epsilon": "1"})))
    assert not any("whole" in each for each in whole["measured"])


@pytest.mark.parametrize(
    "changed",
    [{"tables": []}, {"tables": [["origin", "origin"]]}, {"margin": [-1, 0]}, {"margin": [0]}],
)
def test_a_stored_family_that_is_none_is_refused(changed: dict, tmp_path: Path) -> None:
    import json

    path = tmp_path / "family.json"
    released(sf.Tables([["carrier", "origin"]]), {"rho": "0.5"}).save(path)
    stored = json.loads(path.read_text())
    if "margin" in changed:
        stored["measured"][0]["margin"] = changed["margin"]
    else:
        stored |= changed
    path.write_text(json.dumps(stored))
    with pytest.raises(sf.SfumatoError):
        sf.load(path)


@pytest.mark.parametrize("cost", [{"epsilon": "1"}, {"epsilon": "1", "delta": "0"}])
def test_a_norm_is_refused_before_the_charge_where_noise_does_not_follow_it(cost: dict) -> None:
    with sf.Publisher(source(person="plane", norm_per_person=2), budget="5") as publisher:
        for ask in (publisher.preview, publisher.release):
            with pytest.raises(sf.UsageError, match="only Gaussian noise follows the norm"):
                ask(sf.Tables(FAMILY), **cost)
        assert publisher.remaining == 5


@pytest.mark.parametrize("cost", COSTS[1:])
def test_a_family_within_a_norm_says_so(cost: dict) -> None:
    question = sf.Tables(FAMILY)
    limited = {"person": "plane", "norm_per_person": 2}
    release = released(question, {**cost, "delta": cost.get("delta", 0)}, **limited)
    unit = release.guarantee.unit
    assert unit.limits.given == {"norm_in_tables": 2}
    assert unit.rows_per_person == 4
    words = "counts in all tables cut to a norm of 2"
    assert "in all tables are cut to a norm of 2 (whoever has at" in str(release.guarantee)
    assert words in release.about
    assert "up to the first with which this norm" in release.guarantee.proof.because
    preview = sf.preview(question, domain=source().domain, unit=source(**limited).unit, **cost)
    assert np.isclose(preview.accuracy_of(0), release["carrier", "hour"].accuracy().max())
    assert words in str(preview)
    if "rho" in cost:
        # Two rows of each person would have the same noise.
        unit = source(person="plane", rows_per_person=2).unit
        by_rows = sf.preview(question, domain=source().domain, unit=unit, **cost)
        assert np.isclose(preview.accuracy_of(0), by_rows.accuracy_of(0), rtol=1e-6)


def spread_people() -> pa.Table:
    """50 persons with one row in each of 24 hours, and 50 with 24 rows in one."""
    hours = [*list(range(24)) * 50, *[7] * 24 * 50]
    return pa.table(
        {
            "hour": hours,
            "origin": ["EWR", "JFK"] * 1200,
            "plane": [at // 24 for at in range(2400)],
        }
    )


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_persons_whose_rows_spread_keep_more_of_them(neighbours: str) -> None:
    domain = sf.Domain(hour=DOMAIN["hour"], origin=DOMAIN["origin"])
    question = sf.Tables([["hour", "origin"], "hour"])
    src = sf.source(
        spread_people(),
        domain,
        person="plane",
        norm_per_person=6,
        rows_per_person=24,
        neighbours=neighbours,
        name="people",
    )
    needs = question.needs_at(domain, src.unit, sf.ZCDP("0.1"))
    counts = count(src, [needs])[0].counts.reshape(24, 2)
    # Of the others 6 rows are kept in one cell of the finer table, and hardly more in two.
    spread = np.delete(counts.sum(axis=1), 7).sum() / 23 * 24 / 50
    assert spread >= 12
    assert 6 <= (counts[7].sum() - spread / 24 * 50) / 50 <= 9
    by_rows = sf.source(
        spread_people(), domain, person="plane", rows_per_person=6, neighbours=neighbours
    )
    accuracies = [
        sf.preview(question, domain=domain, unit=each.unit, rho="0.1").accuracy()
        for each in (src, by_rows)
    ]
    assert accuracies[0] <= accuracies[1] * (1 + 1e-6 if neighbours == "add-remove" else 1.2)


def test_counts_that_another_norm_bounds_are_not_answered() -> None:
    src = source(person="plane", norm_per_person=2)
    question = sf.Tables(FAMILY)
    cost = sf.ZCDP("0.1")
    needs = question.needs_at(src.domain, src.unit, cost)
    cube = count(src, [needs])[0]
    with pytest.raises(InternalError, match="not within the norm"):
        question.answer(cube, src.unit, cost, PublicSeed(1))
    other = question.needs_at(src.domain, src.unit, sf.ZCDP("0.2")).norm
    with pytest.raises(InternalError, match="not within the norm"):
        question.answer(ReleaseCounts(cube, None, src.domain, other), src.unit, cost, PublicSeed(1))
    answer = question.answer(
        ReleaseCounts(cube, None, src.domain, needs.norm), src.unit, cost, PublicSeed(1)
    )
    assert answer.guarantee.measure == cost
