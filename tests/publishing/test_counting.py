"""The data are counted once, under one choice of rows, in one state."""

from __future__ import annotations

import os
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import sfumato as sf
from conformance.kinds import people as people_of_kinds
from conformance.kinds import table as table_of
from data import random_tables
from sfumato.answers.counts import Needs
from sfumato.data import Source, count
from sfumato.domain import Cube
from sfumato.domain.lattice import EdgesAxis, GridAxis, Lattice
from sfumato.errors import InternalError
from sfumato.publishing.counting import Counting
from sfumato.random.bits import current
from support.spark_tasks import TableInTasks

POINTS = np.random.default_rng(5).random((500, 2))
DOMAIN = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))


def table(name: str | None = "points", **unit: object) -> Source:
    return sf.source(POINTS, DOMAIN, name=name, **unit)  # type: ignore[arg-type]


PEOPLE = pa.table({"x": POINTS[:, 0], "y": POINTS[:, 1], "who": np.arange(500) % 100})


def people(limit: int = 2, name: str | None = "points", **unit: Any) -> Source:
    return sf.source(PEOPLE, DOMAIN, **({"person": "who"} | unit), rows_per_person=limit, name=name)


def test_a_plan_scans_once_and_charges_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": POINTS[:, 0], "y": POINTS[:, 1]}), path)
    scans = []
    monkeypatch.setattr(
        "sfumato.publishing.counting.count",
        lambda src, lattices, *rest, **named: (
            scans.append(len(lattices)) or count(src, lattices, *rest, **named)
        ),
    )
    with sf.Publisher(sf.source(path, DOMAIN), budget="1") as publisher:
        plan = sf.Plan(
            [sf.Histogram("x", bins=8), sf.Histogram("x", bins=16), sf.Histogram("y")],
            shares=[1, 1, 2],
        )
        answers = publisher.release(plan, epsilon="0.4")
        assert scans == [2]  # 8 bins are unions of 16
        assert [float(a.guarantee.measure.epsilon) for a in answers] == [0.1, 0.1, 0.2]
        assert publisher.remaining == Fraction(3, 5)
        assert [a.receipt.part for a in answers if a.receipt] == ["1 of 3", "2 of 3", "3 of 3"]
        publisher.release(sf.Histogram("x", bins=4), epsilon="0.1")
        assert scans == [2]  # the cube at hand serves it


def test_a_plan_of_one_lattice_refined_by_another_counts_alike() -> None:
    with sf.testing.deterministic(1), sf.Publisher(table(), budget="2") as publisher:
        both = publisher.release(
            [sf.Histogram("x", bins=8), sf.Histogram("x", bins=16)], epsilon="1"
        )
        assert [a.guarantee.private for a in both] == [False, False]


def test_a_map_finer_than_the_lattice_is_counted_again_on_its_own_cells() -> None:
    many = sf.source(np.random.default_rng(1).random((1_500_000, 2)), DOMAIN, name="many")
    with sf.Publisher(many, budget="2") as publisher:
        partition = publisher.release(sf.UniformPartitioner(), epsilon="1")
    assert len(partition.counts) > 256**2
    width = partition.upper[:, 0] - partition.lower[:, 0]
    assert np.allclose(width, width[0])
    assert abs(partition.counts.sum() - 1_500_000) < 12 * np.sqrt(2 * len(partition.counts))


def test_a_second_scan_keeps_the_same_rows_of_each_person(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a table that did not change; one in memory may have, between two releases."""
    keys = []
    monkeypatch.setattr(
        "sfumato.publishing.counting.count",
        lambda *rest, key, **named: keys.append(key) or count(*rest, key=key, **named),
    )
    pq.write_table(pa.table({"x": POINTS[:, 0]}), tmp_path / "x.parquet")
    for src in (sf.source(tmp_path / "x.parquet", sf.Domain(x=sf.Interval(0, 1))), table()):
        with sf.Publisher(src, budget="1") as publisher:
            for bins in (3, 7):
                publisher.release(sf.Histogram("x", bins=bins), epsilon="0.1")
        with sf.Publisher(src, budget="1") as another:
            another.release(sf.Histogram("x", bins=3), epsilon="0.1")
    assert keys[0] == keys[1] != keys[2]
    assert len(set(keys)) == 5
    assert len(keys[0]) == 32


def test_a_table_changed_in_place_is_counted_anew() -> None:
    rows = np.zeros((1_000, 1))
    with sf.Publisher(
        sf.source(rows, sf.Domain(x=sf.Interval(0, 10)), name="t"), budget="20"
    ) as publisher:
        publisher.release(sf.Histogram("x", bins=2), epsilon="5")
        rows[:] = 9
        changed = publisher.release(sf.Histogram("x", bins=4), epsilon="5")
    assert changed.values[3] > 900


def test_threads_may_share_a_publisher(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread changes another one's counts, or choice of rows, in the middle of an answer."""
    people = pa.table({"x": POINTS[:, 0], "who": np.arange(500) % 100})
    source = sf.source(
        people, sf.Domain(x=sf.Interval(0, 1)), person="who", rows_per_person=2, name="people"
    )
    publisher = sf.Publisher(source, budget=100)
    failed: list[Exception] = []
    counting = publisher._answering.counting
    cached = counting._cached

    def slow(*asked: object) -> object:
        time.sleep(0.002)  # for others to come in between; none need come
        return cached(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(counting, "_cached", slow)

    def ask(who: int) -> None:
        for i in range(6):
            try:
                publisher.release(sf.Histogram("x", bins=2 + i), epsilon="0.1", key=f"{who} {i}")
            except Exception as error:
                failed.append(error)

    threads = [threading.Thread(target=ask, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert publisher.remaining == 100 - 24 * Fraction(1, 10)


def test_a_file_that_changes_between_charge_and_scan_gives_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer would be stored for the earlier state, and returned when that one is put back."""
    file = tmp_path / "t.csv"
    file.write_text("x\n1\n")
    os.utime(file, ns=(10**18, 10**18))
    source = sf.source(file, sf.Domain(x=sf.Interval(0, 4)))
    with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget="9") as publisher:
        reserve = publisher.ledger.reserve

        def change_then_reserve(*arguments: Any, **options: Any) -> Any:
            file.write_text("x\n1\n1\n")
            return reserve(*arguments, **options)

        monkeypatch.setattr(publisher.ledger, "reserve", change_then_reserve)
        with pytest.raises(sf.DataError, match="changed while it was read"):
            publisher.release(sf.Histogram("x"), epsilon="1")


# --- what may be shared ---------------------------------------------------------------------------

ROWS_OF_EACH = Needs(
    Lattice((EdgesAxis("rows", (1.0, 2.0, 4.0, 9.0)),)), 3, counted="rows of each person"
)


def by(axis: str, cells: int) -> Needs:
    return Needs(Lattice((GridAxis(axis, 0.0, 1.0, cells),)), cells)


def begun(src: Source) -> Counting:
    counting = Counting(src)
    counting.begin("one state", current())
    counting._label = src.label
    return counting


def scanned(monkeypatch: pytest.MonkeyPatch) -> list[list[Needs]]:
    """What each scan from here on counts."""
    scans: list[list[Needs]] = []
    monkeypatch.setattr(
        "sfumato.publishing.counting.count",
        lambda src, needs, *rest, **named: (
            scans.append(list(needs)) or count(src, needs, *rest, **named)
        ),
    )
    return scans


def cubes(counting: Counting, *needs: Needs) -> list[Cube]:
    """What is counted for questions, on the lattice that each of them names."""
    counted = counting.counts(list(needs), None)
    return [counts.on(need.lattice) for counts, need in zip(counted, needs, strict=True)]


def test_rows_of_each_person_are_counted_once_and_shared_with_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scans = scanned(monkeypatch)
    counting = begun(people())
    of_rows = replace(ROWS_OF_EACH, numbers=0)
    first, rows = cubes(counting, ROWS_OF_EACH, by("x", 4))
    assert first.counts.tolist() == [0, 0, 100]
    assert rows.total == 200
    assert scans == [[of_rows, replace(by("x", 4), numbers=0)]]
    # The same axis, now as a column that the table does not have.
    with pytest.raises(sf.UsageError, match="no axis of that name"):
        cubes(counting, replace(ROWS_OF_EACH, counted="rows"))
    assert cubes(counting, replace(ROWS_OF_EACH, numbers=99)) == [first]
    assert len(scans) == 2


def test_counts_that_hold_on_one_lattice_serve_no_other() -> None:
    counting = begun(people())
    coarse = Lattice((EdgesAxis("rows", (1.0, 9.0)),))
    (counts,) = counting.counts([ROWS_OF_EACH], None)
    assert counts.serves(ROWS_OF_EACH.lattice)
    assert counts.on(ROWS_OF_EACH.lattice) is counts.on(ROWS_OF_EACH.lattice)
    assert not counts.serves(coarse)
    with pytest.raises(InternalError, match="on their own lattice alone"):
        counts.on(coarse)


def test_an_answer_may_know_the_public_axes() -> None:
    counting = begun(people())
    (counts,) = counting.counts([by("x", 4)], None)
    assert counts.domain == DOMAIN
    assert counts.serves(by("x", 8).lattice)
    assert counts.on(by("x", 8).lattice).total == 200


def test_a_finer_lattice_keeps_the_rows_that_the_plan_kept() -> None:
    """Parallel composition over both scans needs it, and the plan looked at further columns."""
    counting = begun(people())
    plan = [by("y", 4), by("x", 4)]
    counts = counting.counts(plan, None)
    for coarse in counts:
        name = coarse.lattice.names[0]
        finer = coarse.on(by(name, 64).lattice)
        assert finer.on(coarse.lattice).counts.tolist() == coarse.on(coarse.lattice).counts.tolist()
    # Asked alone, a lattice is chosen by its own column; cubes at hand still serve it.
    alone = begun(people())
    alone._row_choice_key = counting._row_choice_key
    assert (
        cubes(alone, by("x", 4))[0].counts.tolist()
        != counts[1].on(by("x", 4).lattice).counts.tolist()
    )
    assert (
        cubes(counting, by("x", 4))[0].counts.tolist()
        == counts[1].on(by("x", 4).lattice).counts.tolist()
    )


def test_all_tables_of_a_plan_are_of_one_subset_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cube at hand that other columns chose is counted again, in the same scan."""
    scans = scanned(monkeypatch)
    counting = begun(people())
    both = Lattice((*by("x", 4).lattice.axes, *by("y", 4).lattice.axes))
    cubes(counting, by("x", 4))
    x, xy = cubes(counting, by("x", 4), Needs(both, 16))
    assert len(scans) == 2
    assert xy.counts.reshape(4, 4).sum(axis=1).tolist() == x.counts.tolist()


# --- keys that executors select -------------------------------------------------------------------

ROWS = people_of_kinds(400, seed=11)
KEYED = sf.Domain(**random_tables.DOMAIN, who=sf.Keys())
COST = {"epsilon": 2, "delta": "1e-3"}


def in_tasks(tasks: int = 3, rows: int = 64, **unit: Any) -> tuple[Source, TableInTasks]:
    reader = TableInTasks(table_of(ROWS), tasks, rows)
    return sf.source(reader, KEYED, name="rows", **unit), reader


def test_keys_are_selected_by_executors_and_never_counted_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    src, reader = in_tasks()
    monkeypatch.setattr(reader, "count", None)
    with sf.Publisher(src, budget=sf.ApproxDP(9, "0.1")) as publisher:
        preview = publisher.preview(sf.Histogram("who"), **COST)
        release = publisher.release(sf.Histogram("who"), **COST)
        again = publisher.release(sf.Histogram("who"), **COST)
    assert release.law == preview.law
    assert release.guarantee.measure == preview.cost
    assert "counts the same rows" in release.guarantee.assumptions[-1]
    assert again == release
    assert again.replayed
    assert reader.jobs == 1  # and not again for the stored answer


def test_keys_that_are_selected_in_other_parts_are_released_alike() -> None:
    seen = []
    for tasks, rows in ((3, 5), (2, 50)):
        src, _ = in_tasks(tasks, rows)
        with sf.testing.deterministic(4), sf.Publisher(src, budget=sf.ApproxDP(9, "0.1")) as pub:
            seen.append([pub.release(each, **COST) for each in (BY_WHO, BESIDE)])
    for one, other in zip(*seen, strict=True):
        assert replace(other, receipt=one.receipt) == one
    assert seen[0][0].values.size > 3
    assert not seen[0][0].guarantee.private


BY_WHO = sf.Histogram("who")
BESIDE = sf.Histogram(["word", "who"])


def test_two_releases_have_noise_of_their_own() -> None:
    src, _ = in_tasks()
    with sf.Publisher(src, budget=sf.ApproxDP(9, "0.1")) as publisher:
        first, second = (publisher.release(BY_WHO, fresh=True, **COST) for _ in range(2))
    assert dict(zip(first.cell_names("who"), first.values.tolist(), strict=True)) != dict(
        zip(second.cell_names("who"), second.values.tolist(), strict=True)
    )


def test_a_plan_counts_what_executors_do_not_select_in_one_scan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scans = scanned(monkeypatch)
    src, reader = in_tasks(person="who", rows_per_person=2)
    with sf.Publisher(src, budget=sf.ApproxDP(9, "0.1")) as publisher:
        plan = [sf.Histogram("x", bins=4), BY_WHO, sf.Histogram("x", bins=8), BESIDE]
        releases = publisher.release(plan, **COST)
    assert [[need.lattice.names for need in needs] for needs in scans] == [[("x",)]]
    assert reader.jobs == 3  # that scan, and two selections
    assert [release.lattice.names for release in releases] == [
        ("x",),
        ("who",),
        ("x",),
        ("word", "who"),
    ]


def test_a_question_that_asks_for_all_keys_gets_them() -> None:
    src, _ = in_tasks()
    counting = begun(src)
    needs = BY_WHO.needs(KEYED)
    (counts,) = counting.counts([needs], None)
    assert counting.queries == 0
    assert counts.lattice == needs.lattice
    assert counts.domain is src.domain
    assert counts.serves(needs.lattice)
    whole = counts.on(needs.lattice)
    assert len(whole.keys["who"]) == len({row["who"] for row in ROWS} - {None})
    coarse = Lattice((GridAxis("x", 0.0, 1.0, 2),))
    assert not counts.serves(coarse)
    with pytest.raises(InternalError, match="on the lattice of their question"):
        counts.on(coarse)


def test_a_table_that_changes_while_keys_are_selected_gives_no_answer() -> None:
    src, reader = in_tasks()
    reader.label = lambda name: f"{name} {reader.jobs}"  # type: ignore[method-assign]
    publisher = sf.Publisher(src, budget=sf.ApproxDP(9, "0.1"))
    with pytest.raises(sf.DataError, match="changed while it was read"):
        publisher.release(BY_WHO, **COST)
