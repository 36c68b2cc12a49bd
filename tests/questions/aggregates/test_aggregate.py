"""Means, sums and variances over persons: what they are, what they say, and what is refused."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, pvariance
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from audit.subjects.aggregates import KEY, VISITS, of_people, people
from sfumato.answers.counts import Needs
from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.runs import Mechanism, Published, Rows, published
from sfumato.audit.subjects.subject import less_noise
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.cli import run
from sfumato.data import count, source
from sfumato.domain.cube import Cube
from sfumato.privacy.measures import CentralMeasure
from sfumato.random.bits import Bits
from sfumato.testing import deterministic

DOMAIN = sf.Domain(
    ward=sf.Categories(["A", "B", "C"]),
    wage=sf.Interval(-50, 150),
    cost=sf.Interval(0, 100, step=0.01),
    shop=sf.Keys(),
)
ROWS = 4000


def visits() -> pa.Table:
    draw = np.random.default_rng(7)
    wages = draw.normal(40, 60, ROWS)
    wages[draw.random(ROWS) < 0.02] = math.nan
    wages[draw.random(ROWS) < 0.01] = math.inf
    table = {
        "ward": draw.choice(["A", "B"], ROWS, p=[0.8, 0.2]).tolist(),
        "wage": wages.tolist(),
        "cost": (draw.integers(0, 3000, ROWS) / 100).tolist(),
        "shop": [f"s{i}" for i in draw.integers(0, 3, ROWS).tolist()],
        "rider": [f"rider {i}" for i in draw.zipf(1.5, ROWS).clip(max=700).tolist()],
    }
    table["rider"][::50] = [None] * len(table["rider"][::50])
    return pa.table(table)


TABLE = visits()


def publisher(cells: int = 3, **further: Any) -> sf.Publisher:
    rides = sf.source(
        TABLE, DOMAIN, person="rider", cells_per_person=cells, rows_per_person=9, name="r",
        **further,
    )  # fmt: skip
    return sf.Publisher(rides, budget=sf.ApproxDP(10**7, "1e-3"))


def of_each_person(value: str, by_ward: bool) -> dict[str | None, list[list[float]]]:
    """Of each group, the values of each person's rows."""
    lower, upper = DOMAIN[value].numbers  # type: ignore[union-attr]
    found: dict[tuple[str | None, str], list[float]] = defaultdict(list)
    for row in TABLE.to_pylist():
        if row["rider"] is not None and not math.isnan(row[value]):
            group = row["ward"] if by_ward else None
            found[group, row["rider"]].append(min(max(row[value], lower), upper))
    by_group: dict[str | None, list[list[float]]] = defaultdict(list)
    for (group, _), own in found.items():
        by_group[group].append(own)
    return by_group


def in_plain_python(question: Any) -> list[float]:
    """The statistic of each group that has persons."""
    by_group = of_each_person(question.value, question.by is not None)
    clip = question.clip or (-math.inf, math.inf)
    found = []
    for _, persons in sorted(by_group.items(), key=str):
        of_rows = sum if isinstance(question, sf.Sum) else fmean
        values = [min(max(of_rows(own), clip[0]), clip[1]) for own in persons]
        statistic: Any = {sf.Mean: fmean, sf.Sum: sum, sf.Variance: pvariance}[type(question)]
        found.append(statistic(values))
    return found


QUESTIONS = [
    sf.Mean("wage", by="ward", per="person"),
    sf.Mean("wage", by="ward", per="person", clip=(0, 70)),
    sf.Mean("cost", per="person"),
    sf.Sum("cost", by="ward", per="person", clip=(0, 50)),
    sf.Sum("cost", per="person", clip=(10, 60)),
    sf.Variance("wage", by="ward", per="person"),
    sf.Variance("cost", per="person", clip=(5, 20)),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_with_little_noise_each_group_has_its_statistic(question: Any) -> None:
    wanted = in_plain_python(question)
    with deterministic(1):  # a 99.9% interval misses the truth once in a thousand
        release = publisher().release(question, epsilon=5000)
    values = np.reshape(release.values, -1)[: len(wanted)]
    assert values == pytest.approx(wanted, rel=2e-3)
    low, high = (np.reshape(each, -1)[: len(wanted)] for each in release.interval("0.999"))
    assert (low <= wanted).all()
    assert (high >= wanted).all()
    persons = of_each_person(question.value, question.by is not None)
    numbers = [len(own) for _, own in sorted(persons.items(), key=str)]
    assert np.reshape(release.counts, -1)[: len(wanted)] == pytest.approx(numbers, abs=0.5)


def test_few_rows_of_many_persons_weigh_more_than_many_rows_of_one() -> None:
    table = pa.table({"rider": [1] * 90 + list(range(2, 12)), "cost": [10.0] * 90 + [2.0] * 10})
    rides = sf.source(table, DOMAIN, person="rider", rows_per_person=90, name="few")
    over_rows, over_persons = sf.Publisher(rides, budget=10**6).release(
        [sf.Mean("cost"), sf.Mean("cost", per="person")], epsilon=10**5
    )
    assert float(over_rows.values) == pytest.approx(9.2, abs=0.01)
    assert float(over_persons.values) == pytest.approx(30 / 11, abs=0.01)


def test_a_chosen_clip_is_one_of_persons_means() -> None:
    with deterministic(3):
        release = publisher().release(sf.Mean("cost", per="person", clip="auto"), epsilon=20)
    persons = [fmean(own) for own in of_each_person("cost", by_ward=False)[None]]
    clip = float(release.clips)
    assert float(release.values) == pytest.approx(fmean(min(x, clip) for x in persons), rel=0.02)
    assert f"each clipped to at most {clip:,.6g}" in release.about
    assert "persons lie above" in release.unknowns
    assert "rows" not in f"{release.about} {release.unknowns} {release.title}"


def test_several_values_share_the_cost() -> None:
    release = publisher().release(sf.Mean(["wage", "cost"], by="ward", per="person"), epsilon=9000)
    assert release["cost"].of_persons
    # A row that misses one of the values is dropped for both.
    assert release.values[0, :2] == pytest.approx(in_plain_python(QUESTIONS[0]), rel=2e-3)


def test_keys_are_selected_by_their_persons() -> None:
    question = sf.Mean("cost", by="shop", per="person")
    release = publisher().release(question, epsilon=50, delta="1e-6")
    riders = defaultdict(set)
    for row in TABLE.to_pylist():
        riders[row["shop"]].add(row["rider"])
    shown = release.to_frame()
    assert shown["shop"].to_pylist() == ["s0", "s1", "s2"]
    numbers = [len(riders[shop] - {None}) for shop in ("s0", "s1", "s2")]
    assert shown["persons"].to_pylist() == pytest.approx(numbers, abs=4)
    assert "by their numbers of persons" in release.guarantee.proof.because


# --- noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_noise_grows_with_the_groups_of_a_person_and_not_with_their_rows(
    cells: int, relation: Any
) -> None:
    unit = sf.Unit(400, relation, "rider", sf.privacy.unit.Limits(cells_per_person=cells))
    question = sf.Sum("cost", by="ward", per="person", clip=(0, 50))
    pure = sf.preview(question, domain=DOMAIN, unit=unit, epsilon="1")
    twice = 2 if relation == "replace" else 1
    assert pure.law.scale == twice * cells * pure.basis.unity
    gaussian = sf.preview(question, domain=DOMAIN, unit=unit, rho="1/2")
    # sigma^2 = L2^2 / (2 rho), and L2^2 = c M^2, twice that under replace.
    assert gaussian.law.sigma_squared == twice * cells * gaussian.basis.unity**2
    assert pure.unit.cells_of_person == cells


def test_nobody_is_in_more_groups_than_there_are() -> None:
    unit = sf.Unit(400, person="rider")
    one, three = (
        sf.preview(sf.Mean("cost", by=by, per="person"), domain=DOMAIN, unit=unit, epsilon="1")
        for by in (None, "ward")
    )
    assert one.law.scale == one.basis.unity
    assert three.law.scale == 3 * three.basis.unity


def answered_for(unit: sf.Unit, counted: sf.Unit, cost: CentralMeasure) -> Mechanism:
    """A twin whose noise is that of one unit, over rows that are kept under another."""
    question = sf.Mean("x", by="ward", per="person")
    needs = question.needs_at(VISITS, unit, cost)

    def run(rows: Rows, noise: Bits) -> Published:
        cube = _counted(rows, needs, counted)
        return published(question.answer(cube, unit, cost, noise))

    return run


def _counted(rows: Rows, needs: Needs, unit: sf.Unit) -> Cube:
    rider, ward, x = np.array(rows, float).reshape(len(rows), 3).T
    table = pa.table({"rider": rider.astype(np.int64), "ward": ward, "x": x})
    return count(source(table, VISITS, "rider", unit.rows_per_person), [needs], key=KEY)[0]


def test_a_twin_without_the_number_of_groups_loses_twice_its_claim() -> None:
    cost = sf.PureDP("1")
    one, two = (sf.Unit(cells, person="rider") for cells in (1, 2))
    pairs = people("add-remove")
    assert pure_loss(answered_for(two, two, cost), pairs).loss == pytest.approx(1)
    assert pure_loss(answered_for(one, two, cost), pairs).loss == pytest.approx(2)


@pytest.mark.parametrize("cost", [sf.PureDP("1"), sf.ZCDP("0.5")], ids=str)
@pytest.mark.parametrize(
    "unit", [sf.Unit(2, "add-remove", "rider"), sf.Unit(1, "replace", "rider")], ids=str
)
def test_half_of_the_noise_loses_more_than_the_claim(unit: sf.Unit, cost: Any) -> None:
    question = sf.Mean("x", by="ward", per="person")
    half = of_people(question, unit, less_noise(cost, 2))
    pairs = people(unit.neighbours)
    if isinstance(cost, sf.PureDP):
        assert pure_loss(half, pairs).loss == pytest.approx(2)
    else:
        assert renyi_loss(half, pairs, (1.5, 8.0)).loss == pytest.approx(2)


OF_ONE_EACH = [
    sf.Mean("x", by="g", per="person"),
    sf.Sum("x", by="g", per="person", clip=(0, 200)),
    sf.Variance("x", by="g", per="person"),
]
NOISES = [{"epsilon": "1"}, {"rho": "1/2"}]


def equal_groups(
    question: Any, groups: int, persons: int, noise: dict[str, str]
) -> tuple[Any, float]:
    """A release over many groups of the same persons with three rows each, and the truth."""
    draw = np.random.default_rng(persons)
    wages = draw.integers(0, 100, (persons, 3)).astype(float)
    domain = sf.Domain(g=sf.Interval(0, groups, step=1), x=sf.Interval(0, 101, step=1))
    n = groups * persons * 3
    table = pa.table(
        {
            "g": np.repeat(np.arange(groups), persons * 3).astype(float),
            "x": np.tile(wages.reshape(-1), groups),
            # Everybody is in one group only.
            "rider": np.arange(n) // 3,
        }
    )
    rides = sf.source(table, domain, person="rider", rows_per_person=1, name="groups")
    with deterministic(persons + 1):
        paid = sf.Publisher(rides, budget=sf.ZCDP(9) if "rho" in noise else 9)
        release = paid.release(question, **noise)
    means = wages.mean(axis=1) if persons else np.zeros(1)
    truths = {
        "mean": means.mean(),
        "sum": wages.sum(axis=1).clip(0, 200).sum(),
        "variance": means.var(),
    }
    return release, float(truths[question.statistic])


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("question", OF_ONE_EACH, ids=lambda question: question.statistic)
@pytest.mark.parametrize("persons", [0, 1, 5, 50])
def test_intervals_hold_at_every_number_of_persons(
    persons: int, question: Any, noise: dict[str, str]
) -> None:
    """1,000 equal groups in one release: 50 misses, and four standard errors more, are 78."""
    release, truth = equal_groups(question, 1000, persons, noise)
    low, high = release.interval()
    assert ((low > truth) | (truth > high)).sum() <= 78
    if persons == 50 and question.statistic != "variance":
        # Intervals of half the width miss far more often.
        middle, half = (low + high) / 2, (high - low) / 4
        assert (abs(truth - middle) > half).sum() > 200


@pytest.mark.deep
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_coverage_over_persons(
    noise: dict[str, str], evidence: Callable[[str, object], None]
) -> None:
    trials = 10_000
    figures: dict[str, dict[int, float]] = {}
    for question in OF_ONE_EACH:
        covered = figures.setdefault(question.statistic, {})
        for persons in (0, 1, 5, 50):
            release, truth = equal_groups(question, trials, persons, noise)
            low, high = release.interval()
            covered[persons] = float(((low <= truth) & (truth <= high)).mean())
            assert covered[persons] >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / trials)
    law = "gaussian" if "rho" in noise else "laplace"
    evidence(f"coverage_over_persons_{law}", {"trials": trials, **noise, **figures})


# --- words ----------------------------------------------------------------------------------------


def test_a_release_says_that_it_is_about_persons() -> None:
    release = publisher(2).release(sf.Mean("wage", by="ward", per="person"), epsilon=1)
    assert release.title == "Mean of wage over persons by ward"
    assert release.about == (
        "the persons counted (each in at most 2 cells), each by the mean of their values"
    )
    assert release.to_frame().column_names[:3] == ["ward", "persons", "mean"]
    assert str(release.guarantee.unit).startswith("any one person counted at most once in a cell")
    assert "The value of a person in a cell is the mean" in release.guarantee.counted
    assert "L2 = sqrt c M" in release.guarantee.proof.sensitivity
    over_rows = publisher(2).release(sf.Mean("wage", by="ward"), epsilon=1)
    assert over_rows.title == "Mean of wage by ward"
    assert "rows counted" in over_rows.about
    assert over_rows.to_frame().column_names[1] == "rows"


def test_a_sum_says_what_each_person_is_clipped_to() -> None:
    release = publisher(2).release(sf.Sum("cost", per="person", clip=(0, 1500)), epsilon=1)
    assert release.title == "Sum of cost over persons"
    assert "each by the sum of their values, clipped to 0 to 1,500" in release.about
    assert "rounded to the nearest step of 0.01" in release.about
    assert release.group_names == ["all persons"]


def test_words_for_a_person_in_a_period() -> None:
    days = pa.array([i % 5 for i in range(ROWS)], pa.int32()).cast(pa.date32())
    table = TABLE.append_column("day", days)
    wide = sf.Domain({**DOMAIN, "cost": sf.Interval(0, 1000, step=0.01)})
    rides = sf.source(table, wide, person=["rider", "day"], rows_per_person=2, name="days")
    grouped, whole = sf.Publisher(rides, budget=99).release(
        [
            sf.Mean("cost", by="ward", per="person"),
            sf.Mean("cost", per="person", clip="auto"),
        ],
        epsilon=40,
    )
    assert grouped.title == "Mean of cost over persons, each once for each day, by ward"
    assert whole.title.startswith("Mean of cost over persons, each once for each day, each clipped")
    assert "persons, each once for each day, lie above" in whole.unknowns
    by_day = {(row["rider"], row["day"]) for row in table.to_pylist() if row["rider"] is not None}
    assert float(whole.counts) == pytest.approx(len(by_day), abs=5)


def test_the_picture_says_whose_values_it_shows() -> None:
    asked = publisher(2)
    over_persons, over_rows = asked.release(
        [sf.Mean("wage", by="ward", per="person"), sf.Mean("wage", by="ward")], epsilon=9
    )
    assert over_persons.plot().get_xlabel() == "Mean of wage over persons"
    assert over_rows.plot().get_xlabel() == "Mean of wage over rows"


def test_a_release_travels(tmp_path: Path) -> None:
    for question in (QUESTIONS[0], QUESTIONS[3], sf.Mean("cost", per="person", clip="auto")):
        assert from_bytes(to_bytes(question), type(question)) == question
        release = publisher().release(question, epsilon="1")
        assert sf.load(release.save(tmp_path / "r.json")) == release


def test_a_question_about_rows_is_stored_as_before() -> None:
    assert b"per" not in to_bytes(sf.Mean("wage", per="row"))
    assert b'"per":"person"' in to_bytes(sf.Mean("wage", per="person"))


def test_previews_take_a_number_of_persons() -> None:
    asked = {"domain": DOMAIN, "unit": sf.Unit(2, person="rider"), "epsilon": "1"}
    question = sf.Mean("wage", by="ward", per="person")
    with pytest.raises(sf.UsageError, match="number of persons"):
        sf.preview(question, **asked).accuracy()  # type: ignore[arg-type]
    assert "how many persons a group has" in str(sf.preview(question, **asked))  # type: ignore[arg-type]
    said = str(sf.preview(question, rows=3000, **asked))  # type: ignore[arg-type]
    assert "if 3,000 persons are divided evenly among the groups" in said
    found = sf.window(
        question,
        domain=DOMAIN,
        unit=sf.Unit(2, person="rider"),
        accuracy=sf.Within(2),
        risk=sf.Risk(prior=0.01, posterior=0.05),
        rows=3000,
    )
    assert found.feasible


PLAN = """
[source]
path = "visits.parquet"
person = "rider"
rows_per_person = 3
[domain]
ward = { type = "categories", labels = ["A", "B", "C"] }
cost = { type = "interval", lower = 0, upper = 100, step = 0.01 }
[budget]
account = "visits"
epsilon = 5
[release]
epsilon = 4
[[questions]]
type = "mean"
value = "cost"
by = "ward"
per = "person"
[[questions]]
type = "sum"
value = "cost"
per = "person"
clip = [0, 50]
"""


def test_plans_and_commands_ask_for_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "visits.parquet")
    Path("plan.toml").write_text(PLAN)
    assert run(["release", "plan.toml", "--ledger", "b.db", "--report", "r.html"]) == 0
    printed = capsys.readouterr().out
    assert "# Mean of cost over persons by ward\nward\tpersons\tmean" in printed
    assert "# Sum of cost over persons\npersons\tsum" in printed
    assert "Each person is counted in at most " in Path("r.html").read_text()
    asked = ["mean", "visits.parquet", "--axis", "cost=0..100/0.01", "--value", "cost"]
    paid = ["--epsilon", "1", "--budget", "1", "--json"]
    assert run([*asked, "--person", "rider", "--per", "person", *paid]) == 0
    (release,) = json.loads(capsys.readouterr().out)
    assert release["scale"]["persons"] == {"statistic": "mean", "step": 0.01, "rounding": 0.0}
    total = ["sum", *asked[1:], "--person", "rider", "--per", "person", "--clip", "0:50"]
    assert run([*total, "--ledger", "c.db", *paid]) == 0
    assert json.loads(capsys.readouterr().out)[0]["scale"]["upper"] == 50
    assert run([*asked, "--per", "person", "--ledger", "d.db", *paid]) == 2
    assert "no column names the persons" in capsys.readouterr().err


def test_a_missing_value_may_stand_for_one(tmp_path: Path) -> None:
    table = pa.table({"x": [None, 4.0, 8.0], "rider": [1, 1, 2]})
    for interval in (sf.Interval(0, 9, missing=0), sf.Interval(0, 10, step=1, missing=0)):
        rides = sf.source(table, {"x": interval}, person="rider", rows_per_person=2, name="missing")
        release = sf.Publisher(rides, budget=10**6).release(
            sf.Mean("x", per="person"), epsilon=10**5
        )
        assert float(release.values) == pytest.approx(5, abs=0.01)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sf.Mean("wage", per="rider"), "a row or a person has a value"),  # type: ignore[arg-type]
        (lambda: sf.Sum("cost", per="person"), "a person's sum needs its own"),
        (lambda: sf.Sum("cost", per="person", clip="auto"), "a person's sum needs its own"),
        (lambda: sf.Sum(["cost", "wage"], per="person", clip=9), "one clip does not fit"),
        (lambda: sf.Variance("cost", per="person", clip="auto"), "for means and sums only"),
    ],
)
def test_what_makes_no_sense_is_refused_in_three_parts(make: Any, said: str) -> None:
    with pytest.raises(sf.UsageError, match=said) as refused:
        make()
    assert all((refused.value.asked, refused.value.obstacle, refused.value.remedy))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (sf.Sum("wage", per="person", clip=(0, 500)), "has no step"),
        (sf.Sum("cost", per="person", clip=(0, 0.005)), r"multiple of 0\.01"),
        (sf.Mean("cost", per="person", clip=(0, 500)), "does not lie within the bounds"),
    ],
)
def test_what_does_not_fit_the_domain_is_refused_before_the_charge(
    question: Any, said: str
) -> None:
    asked = publisher()
    with pytest.raises(sf.UsageError, match=said):
        asked.release(question, epsilon="1")
    assert asked.account.spent == (0, 0)


def test_without_a_person_column_nothing_is_charged() -> None:
    asked = sf.Publisher(sf.source(TABLE, DOMAIN, name="rows"), budget=1)
    with pytest.raises(sf.UsageError, match="no column names the persons"):
        asked.release(sf.Mean("wage", per="person"), epsilon="1")
    assert asked.account.spent == (0, 0)


def test_a_limit_is_recommended_from_the_cells_of_each_person() -> None:
    asked = publisher()
    of_rows = asked.release(sf.Persons(most_rows=900), epsilon="9")
    of_cells = asked.release(sf.Persons(most_rows=900, of="cells", axes="ward"), epsilon="9")
    for clip in (None, "auto"):
        question = sf.Mean("wage", by="ward", per="person", clip=clip)  # type: ignore[arg-type]
        assert sf.recommend(of_cells, question, epsilon="1", domain=DOMAIN).limit in (1, 2)
        with pytest.raises(sf.UsageError, match=r"axes=\['ward'\]"):
            sf.recommend(of_rows, question, epsilon="1", domain=DOMAIN)
    with pytest.raises(sf.UsageError, match="each person once, whatever the limit"):
        sf.recommend(of_cells, sf.Mean("wage", per="person"), epsilon="1", domain=DOMAIN)


@pytest.mark.parametrize("per", ["row", "person"])
def test_a_clip_from_the_lower_bound_is_written_in_one_way(per: Any) -> None:
    domain = sf.Domain(cost=sf.Interval(-10, 1000, step=1))
    written = [sf.Sum("cost", clip=clip, per=per) for clip in (500, (-10, 500), (-10, 500.0))]
    assert len({question.canonical(domain) for question in written}) == 1
    other = sf.Sum("cost", clip=(0, 500), per=per)
    assert other.canonical(domain) == other


@pytest.mark.parametrize("step", [1, None])
@pytest.mark.parametrize("clip", [None, 8, (2, 8), "auto"])
@pytest.mark.parametrize("per", ["row", "person"])
@pytest.mark.parametrize("kind", [sf.Mean, sf.Sum, sf.Variance])
def test_values_are_read_from_the_column_that_the_axis_names(
    kind: Any, per: Any, clip: Any, step: Any
) -> None:
    table = pa.table({"who": range(200), "wage_net": [4.0] * 200, "wage": [9.0] * 200})
    domain = sf.Domain(wage=sf.Interval(0, 10, step=step, column="wage_net"))
    try:
        question = kind("wage", clip=clip, per=per)
        question.needs(domain)
    except sf.UsageError:
        pytest.skip("refused for its clip")
    people = sf.source(table, domain, person="who")
    with deterministic(1):
        release = sf.Publisher(people, budget=10**6).release(question, epsilon=10**6)
    expected = {"mean": 4, "sum": 800, "variance": 0}[question.statistic]
    assert float(release.values) == pytest.approx(expected, abs=0.01)
