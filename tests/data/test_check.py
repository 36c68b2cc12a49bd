"""A check tells the custodian everything that would be lost, and nothing leaves the screen."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
import re
import traceback
import uuid
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.data import count
from sfumato.data.check import _everything, check
from sfumato.data.losses import MOST_LABELS, SHOWN, Check, QuestionCheck
from sfumato.domain import Axis
from sfumato.ledger import open_ledger

DOMAIN = sf.Domain(
    age=sf.Interval(0, 100, step=1),
    yes=sf.Categories(["true", "false", "maybe"]),
    kind=sf.Categories(["north", "south"], other="else"),
)
ROWS = (
    "age,yes,kind,p\n31,True,north,Ada\n-5,False,South ,Ada\n140,True,nort,Ada\nx,true,north,Bob\n"
    ",false,west,\n40,true,north\n41,true,north,Cy,9\n42,true,M\udcfcnchen,Cy\n"
)


def table(folder: Path, text: str = ROWS) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def seen(path: object, domain: sf.Domain = DOMAIN, **unit: object) -> Check:
    return check(sf.source(path, domain, **unit))  # type: ignore[arg-type]


def test_everything_that_would_be_lost_is_counted(tmp_path: Path) -> None:
    found = seen(table(tmp_path), person="p", rows_per_person=1)
    assert (found.rows, found.wrong_length, found.unended, found.without_person) == (6, 2, 0, 1)
    age, yes, kind = found.axes
    assert (age.missing, age.unparsed, age.below, age.above) == (2, 1, 1, 1)
    assert (yes.missing, yes.unmatched) == (0, 3)
    assert [(each.label, each.rows, each.nearest) for each in yes.labels] == [
        ("True", 2, "true"),
        ("False", 1, "false"),
    ]
    assert (kind.missing, kind.unparsed, kind.not_utf8, kind.unmatched) == (1, 1, 1, 3)
    assert {each.label: each.nearest for each in kind.labels} == {
        "South ": "south",
        "nort": "north",
        "west": None,
    }
    assert any('encoding="cp1252"' in hint for hint in found.hints)


def test_rows_and_persons_beyond_the_limit(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 300, 4000)
    frame = pa.table({"x": rng.random(4000), "p": pa.array(ids, mask=ids == 7)})
    domain = sf.Domain(x=sf.Interval(0, 1))
    rows = Counter(ids[ids != 7].tolist())
    for limit in (1, 12, 50):
        found = seen(frame, domain, person="p", rows_per_person=limit)
        kept = sum(min(each, limit) for each in rows.values())
        beyond = sum(each > limit for each in rows.values())
        missing = int((ids == 7).sum())
        assert found.without_person == missing
        wanted = QuestionCheck("all axes", kept, missing, 4000 - missing - kept, len(rows), beyond)
        assert found.questions == (wanted,)


def test_persons_are_counted_alike_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    frame = pa.table(
        {"x": rng.random(60_000), "p": [f"person {i}" for i in rng.integers(0, 9000, 60_000)]}
    )
    domain = sf.Domain(x=sf.Interval(0, 1))
    whole = seen(frame, domain, person="p", rows_per_person=5)
    monkeypatch.setenv("SFUMATO_MEMORY", "64K")
    assert seen(frame, domain, person="p", rows_per_person=5) == whole


def test_each_question_of_a_plan_is_looked_at(tmp_path: Path) -> None:
    publisher = sf.Publisher(sf.source(table(tmp_path), DOMAIN), budget="1")
    found = publisher.check([sf.Histogram("age", bins=(20, 40, 60)), sf.Histogram(["yes", "kind"])])
    assert [(each.counted, each.dropped) for each in found.questions] == [(4, 2), (2, 4)]
    assert (found.axes[0].below, found.axes[0].above) == (1, 1)
    assert "1 row lies below the first edge: counted in the bin there" in str(found)
    assert "1 row lies below the lower bound: clamped to it" in str(
        publisher.check(sf.Histogram("age", bins=4))
    )
    assert publisher.remaining == 1
    assert publisher.check().questions[0].title == "all axes"


def test_labels_without_number_are_remembered_in_part() -> None:
    words = [f"w{i:06d}" for i in range(3 * MOST_LABELS)]
    frame = pa.table({"kind": pa.chunked_array([["often"] * 50 + words[i::3] for i in range(3)])})
    axis = seen(frame, sf.Domain(kind=sf.Categories(["a"]))).axes[0]
    assert axis.unmatched == 150 + len(words)
    assert not axis.exact
    assert axis.labels[0].label == "often"
    assert "at least" in str(seen(frame, sf.Domain(kind=sf.Categories(["a"]))))


FORMS: dict[str, tuple[bytes, str]] = {
    "semicolons": (b"age;yes;kind\n1;true;north\n", "has 2 semicolons and no comma"),
    "tabs": (b"age\tyes\tkind\n1\ttrue\tnorth\n", "2 tabs"),
    "Latin-1 in the header": (
        "age,yes,kind,Größe\n1,true,north,2\n".encode("latin-1"),
        'encoding="cp1252"',
    ),
    "UTF-16": ("age,yes,kind\n1,true,north\n".encode("utf-16"), 'encoding="utf-16"'),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_would_be_refused_is_told_why(form: str, tmp_path: Path) -> None:
    content, hint = FORMS[form]
    (tmp_path / "t.csv").write_bytes(content)
    found = seen(tmp_path / "t.csv")
    assert found.rows is None
    assert found.refused is not None
    assert hint in found.refused
    assert "would be refused" in str(found)


def test_tables_of_every_kind(tmp_path: Path) -> None:
    frame = pa.table({"x": [0.5, None, 7.0], "k": ["a", None, "a"], "flag": [True, False, None]})
    pq.write_table(frame, tmp_path / "t.parquet")
    domain = sf.Domain(x=sf.Interval(0, 1), k=sf.Keys(), flag=sf.Categories([True]))
    for data in (frame, tmp_path / "t.parquet", frame.to_pandas(), frame.to_reader()):
        found = seen(data, domain)
        assert [(each.missing, each.above, each.unmatched) for each in found.axes] == [
            (1, 1, 0),
            (1, 0, 0),
            (1, 0, 1),
        ]
        assert found.questions == (QuestionCheck("all axes", 1, 2),)


def test_it_stays_on_the_screen(tmp_path: Path) -> None:
    found = seen(table(tmp_path), person="p")
    assert repr(found) == "<Check, not for publication: print it to read it>"
    with pytest.raises(sf.UsageError):
        pickle.dumps(found)
    shown = str(found)
    assert shown.startswith("NOT FOR PUBLICATION")
    assert "no longer public" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
    assert json.loads(found.to_json())["not_for_publication"] is True


def test_a_failure_shows_nothing_of_the_rows(tmp_path: Path) -> None:
    src = sf.source(pa.table({"age": [8_675_309.0] * 9}), sf.Domain(age=sf.Interval(0, 1)))
    kinds = (KeyboardInterrupt, ValueError, sf.InternalError)
    for kind in kinds:

        def stop(done: int, total: int | None) -> None:
            raise kind("stopped")  # noqa: B023

        with pytest.raises((KeyboardInterrupt, sf.InternalError)) as caught:
            check(src, progress=stop)
        told = "".join(
            traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
        )
        assert "_add_batch" not in told
        assert "8675309" not in told
        assert caught.value.__context__ is None


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(table(tmp_path))
    asked = [
        "check",
        path,
        "--axis",
        "yes=true,false,maybe",
        "--axis",
        "age=0..100/1",
        "--person",
        "p",
    ]
    assert run(asked) == 0
    shown = capsys.readouterr()
    assert "'True': 2 rows; nearest listed: 'true'" in shown.out
    assert run([*asked, "--rows-per-person", "2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["not_for_publication"], printed["limit"], printed["rows"]) == (True, 2, 6)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[source]\npath = "t.csv"\nperson = "p"\n'
        '[domain]\nyes = { type = "categories", labels = ["true", "false", "maybe"] }\n'
        '[budget]\naccount = "a"\nepsilon = "1"\n[release]\nepsilon = "1"\n'
        '[[questions]]\ntype = "histogram"\naxes = ["yes"]\n'
    )
    assert run(["check", str(plan)]) == 0
    assert "nearest listed: 'true'" in capsys.readouterr().out
    assert run(["check", str(plan), "--person", "p"]) == 2
    assert run(["check", path]) == 2
    assert run(["check", str(tmp_path / "none.csv"), "--axis", "a=0..1"]) == 4
    assert sorted(each.name for each in tmp_path.iterdir()) == ["plan.toml", "t.csv"]


def test_nothing_of_it_is_in_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with sf.Publisher(
        sf.source(table(tmp_path), DOMAIN), ledger=path, account="a", budget="1"
    ) as publisher:
        before = path.read_bytes()
        publisher.check()
        assert path.read_bytes() == before
    with open_ledger(path) as ledger:
        assert ledger.account("a").spent == (0, 0)


def test_losses_to_limits_by_cell_are_counted() -> None:
    frame = pa.table({"x": [0, 0, 0, 1, 2, 0, 3, None], "p": [1, 1, 1, 1, 1, 2, None, 2]})
    domain = sf.Domain(x=sf.Interval(0, 4, step=1))
    src = sf.source(frame, domain, person="p", rows_per_person=9, rows_per_cell=2)
    publisher = sf.Publisher(src, budget=1)
    by_x, persons, rows = publisher.check(
        [sf.Histogram("x"), sf.Histogram("x", count="persons"), sf.Persons(most_rows=9)]
    ).questions
    assert (by_x.counted, by_x.beyond_limit, by_x.persons) == (5, 1, 2)
    assert by_x.persons_beyond_limit == 1
    shown = " ".join(str(publisher.check(sf.Histogram("x"))).split())
    assert "the limits of a person (at most 9 rows, at most 2 rows in a cell): 1 of 2" in shown
    assert (persons.counted, persons.beyond_limit, persons.persons_beyond_limit) == (4, 2, 1)
    assert (rows.counted, rows.beyond_limit, rows.dropped, rows.persons) == (7, 0, 1, 2)
    assert publisher.remaining == 1


@pytest.mark.parametrize("clip", [None, "auto"])
def test_values_of_persons_lose_whole_cells_only(clip: Any) -> None:
    frame = pa.table({"x": [0, 0, 0, 1, 2, 0], "v": [1, 2, 3, 4, 5, None], "p": [1, 1, 1, 1, 2, 2]})
    domain = sf.Domain(x=sf.Interval(0, 4, step=1), v=sf.Interval(0, 9, step=1))
    one, two = (
        sf.Publisher(sf.source(frame, domain, person="p", rows_per_person=cells), budget=1)
        for cells in (1, 2)
    )
    question = sf.Mean("v", by="x", per="person", clip=clip)
    (found,) = two.check(question).questions
    assert (found.counted, found.beyond_limit, found.dropped) == (5, 0, 1)
    (fewer,) = one.check(question).questions
    # Which of two cells is kept, that of three rows or that of one, is chosen at random.
    assert (fewer.counted, fewer.beyond_limit) in ((4, 1), (2, 3))
    assert (fewer.persons, fewer.persons_beyond_limit) == (2, 1)
    assert "the limits of a person (at most 1 cell): 1 of 2" in " ".join(
        str(one.check(question)).split()
    )


def test_derived_axes_and_cells_of_missing_values(tmp_path: Path) -> None:
    """A field that is no date is missing, and one outside a span is said to be outside."""
    text = "when,AGE\n2024-01-31,3\n3/14/2024,\n14.3.2024,7\n,8\n2023-12-31T23:30Z,x\n"
    domain = sf.Domain(
        month=sf.Month("when", "2024-01", "2024-02"),
        year=sf.Year("when", 2024, 2025, "Europe/Berlin", other="else", missing="none"),
        age=sf.Interval(0, 5, column="AGE", missing=True),
    )
    found = seen(table(tmp_path, text), domain)
    month, year, age = found.axes
    assert (month.missing, month.unparsed, month.unmatched) == (3, 2, 1)
    assert (year.missing, year.unmatched) == (3, 0)
    assert (age.missing, age.unparsed, age.above) == (2, 1, 2)
    assert found.questions[0].counted == 1
    assert "1 row lies outside the span" in str(found)
    assert "2 because what stands there does not parse" in str(found)


def test_a_month_of_text_is_refused_by_its_type() -> None:
    """Before a value is read: a frame that holds text, and a date that has no hour."""
    text = pa.table({"when": ["2024-01-31"]})
    days = pa.table({"when": pa.array([19_000], pa.date32())})
    for data, axis, words in (
        (text, sf.Month("when"), "of type string, and the month is taken from dates or times"),
        (text, sf.Weekday("when", "UTC"), "the weekday in UTC is taken from dates or times"),
        (days, sf.Hour("when"), "dates have no hour"),
        (pa.table({"when": [1.5]}), sf.Year("when", 1, 2), "of type double"),
    ):
        found = seen(data, sf.Domain(x=axis))
        assert found.rows is None
        assert words in str(found.refused)
        publisher = sf.Publisher(sf.source(data, sf.Domain(x=axis)), budget=1)
        with pytest.raises(sf.DataError, match=r"taken from|have no hour"):
            publisher.release(sf.Histogram("x"), epsilon=1)
        assert publisher.remaining == 1


def test_axes_that_read_one_column_otherwise_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "code,when\n7,2024-01-31\n")
    domain = sf.Domain(
        number=sf.Interval(0, 9, column="code"),
        label=sf.Categories(["7"], column="code"),
        day=sf.Interval("2024-01-01", "2025-01-01", column="when"),
        time=sf.Interval("2024-01-01T00:00", "2025-01-01T00:00", column="when"),
        month=sf.Month("when"),
    )
    src = sf.source(path, domain)
    with pytest.raises(sf.UsageError, match="read it as values of another kind"):
        src.require([sf.Histogram(["number", "label"]).needs(domain)])
    shared = sf.Histogram(["day", "time", "month"], bins=12).needs(domain)
    src.require([shared])
    with sf.Publisher(src, budget=10**6) as publisher:
        release = publisher.release(sf.Histogram(["day", "time", "month"], bins=12), epsilon=10**6)
    assert release.values[1, 0, 0] + release.values[0, 0, 0] + release.values[0, 1, 0] == 1


def test_another_zone_or_column_is_another_question() -> None:
    """Its stored answer must not be found under the first."""
    data = pa.table({"a": pa.array([0], pa.timestamp("s")), "b": pa.array([9], pa.timestamp("s"))})
    ledger = open_ledger(None)
    seen_keys = set()
    for axis in (sf.Hour("a"), sf.Hour("b"), sf.Hour("a", "Asia/Tokyo"), sf.Hour("a", None, "n")):
        src = sf.source(data, sf.Domain(h=axis), name="t")
        release = sf.Publisher(src, ledger=ledger, budget=9).release(sf.Histogram("h"), epsilon=1)
        assert not release.replayed
        assert release.receipt is not None
        seen_keys.add(release.receipt.key)
    assert len(seen_keys) == 4


def test_a_label_that_was_listed_in_two_parts_is_told_how_to_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wards.csv"
    path.write_text('ward\n"Ear, Nose & Throat"\n"Eye, left"\n')
    hint = "nearest listed: 'Nose & Throat'. In --axis, write a label with a comma as"
    assert run(["check", str(path), "--axis", "ward=Ear, Nose & Throat,Eye,left eye"]) == 0
    shown = capsys.readouterr().out
    assert hint in " ".join(shown.split())
    assert shown.count("with a comma") == 1
    assert run(["check", str(path), "--axis", 'ward="Ear, Nose & Throat","Eye, left"']) == 0
    assert "every row has a value that is listed" in capsys.readouterr().out


def test_the_upper_bound_of_an_axis_with_a_step_counts_as_the_last_step() -> None:
    rows = pa.table({"x": [99.0, 100, 100, 101]})
    for step, above, words in (
        (None, 1, "above the upper bound: clamped to it"),
        (1, 3, "at or above the upper bound: counted as the last step below it"),
    ):
        domain = sf.Domain(x=sf.Interval(0, 100, step=step))
        found = sf.Publisher(sf.source(rows, domain, name="t"), budget="1").check(sf.Histogram("x"))
        assert found.axes[0].above == above
        assert f"{above} {'rows lie' if above > 1 else 'row lies'} {words}" in str(found)


# --- Python objects -------------------------------------------------------------------------------

MISSING_OBJECTS: tuple[object, ...] = (
    None,
    math.nan,
    pd.NA,
    pd.NaT,
    Decimal("NaN"),
    Decimal("sNaN"),
    np.float32("nan"),
    np.datetime64("NaT"),
)
OBJECTS: tuple[object, ...] = (
    *MISSING_OBJECTS,
    *("a", "b", "A", "1", "12", "1,5", "2024-01-01", "True", "", "nan", "\ud800"),
    *(b"a", b"\xff", True, False, np.bool_(True)),
    *(1, 2, 12, 10**30, -(2**63), np.int64(1), 1.0, 2.5, math.inf, np.float32(1.5)),
    *(Decimal("1"), Decimal("2.50"), Decimal("Infinity"), 1j, Fraction(1, 2)),
    *(
        dt.date(1999, 1, 1),
        dt.date(2024, 1, 1),
        dt.datetime(2024, 1, 2, 3),
        dt.datetime(2024, 1, 3, tzinfo=dt.UTC),
    ),
    *(pd.Timestamp("2024-01-31"), np.datetime64("2024-01-01"), dt.time(1), dt.timedelta(1)),
    *(uuid.UUID(int=7), ("a",), ["a"], {"a": 1}, object()),
)
OBJECT_AXES: dict[str, Axis] = {
    "text": sf.Categories(["a", "b", "12"]),
    "text with other": sf.Categories(["a", "b"], other="else", missing="none"),
    "text of booleans": sf.Categories(["True", "False"], missing="none"),
    "whole numbers": sf.Categories([1, 2]),
    "whole numbers with other": sf.Categories([1, 0], other="else", missing="none"),
    "booleans": sf.Categories([True], missing="none"),
    "numbers": sf.Interval(0, 2),
    "numbers with missing": sf.Interval(0, 3, step=1, missing=True),
    "dates": sf.Interval("2024-01-01", "2024-01-03", step=1),
    "times": sf.Interval("2024-01-01T00:00", "2024-01-02T00:00", missing=True),
    "keys": sf.Keys(),
    "months": sf.Month("x", "2024-01", "2024-02", other="else", missing="none"),
    "weekdays": sf.Weekday("x", "Europe/Berlin"),
}


def object_source(axis: Axis, **unit: Any) -> sf.Source:
    copies = [3 if place % 2 else 2 for place in range(len(OBJECTS))]
    objects = [cell for cell, n in zip(OBJECTS, copies, strict=True) for _ in range(n)]
    who = [OBJECTS[place % len(OBJECTS)] for place in range(len(objects))]
    frame = pd.DataFrame(
        {"x": pd.Series(objects, dtype=object), "who": pd.Series(who, dtype=object)}
    )
    calendar = getattr(axis, "calendar", msgspec.UNSET) is not msgspec.UNSET
    return sf.source(frame, {"derived" if calendar else "x": axis}, name="objects", **unit)


@pytest.mark.parametrize("unit", [{}, {"person": "who", "rows_per_person": 2}], ids=["rows", "who"])
@pytest.mark.parametrize("kind", OBJECT_AXES)
def test_a_check_counts_as_many_rows_of_objects_as_the_scan(
    kind: str, unit: dict[str, Any]
) -> None:
    objects = object_source(OBJECT_AXES[kind], **unit)
    losses = check(objects)
    (cube,) = count(objects, [_everything(objects)])
    assert losses.questions[0].counted == int(np.asarray(cube.counts).sum()) > 0
    assert (losses.without_person > 0) == bool(unit)


@pytest.mark.parametrize("kind", [kind for kind in OBJECT_AXES if kind != "keys"])
def test_a_check_loses_the_objects_that_the_scan_loses(kind: str) -> None:
    """What is missing or not listed lies in a cell of its own, if the axis has one."""
    objects = object_source(OBJECT_AXES[kind])
    losses = check(objects)
    (lost,) = losses.axes
    needs = sf.Histogram(lost.name).needs(objects.domain)
    (cube,) = count(objects, [needs])
    names = needs.lattice.axes[0].cell_names()
    rows = dict(zip(names, cube.counts.ravel().tolist(), strict=True))
    missing = rows.get("none", rows.get("missing"))
    other = rows.get("else")
    assert missing in (None, lost.missing)
    assert other in (None, lost.unmatched)
    assert "else" not in rows or lost.unmatched > 0
    dropped = (missing is None) * lost.missing + (other is None) * lost.unmatched
    assert losses.rows == sum(rows.values()) + dropped


@pytest.mark.parametrize("kind", OBJECT_AXES)
def test_a_check_tells_other_objects_from_missing_ones(kind: str) -> None:
    """What is missing has no value; anything else that is not read is counted by its type."""
    losses = check(object_source(OBJECT_AXES[kind]))
    (axis,) = losses.axes
    n_missing = sum(3 if place % 2 else 2 for place in range(len(MISSING_OBJECTS)))
    assert axis.missing == n_missing + axis.unparsed
    (hint,) = losses.hints
    listed = re.findall(r"\w+ \(([0-9]+)\)", hint)
    assert sum(map(int, listed)) == axis.unparsed
    assert "dict (" in hint
    assert "NoneType" not in hint


def test_numbers_that_are_not_listed_are_named(tmp_path: Path) -> None:
    """Text and objects alike; what is no whole number of 64 bits has no name."""
    domain = sf.Domain(code=sf.Categories([1, 2]))
    path = table(tmp_path, "code\n1\n7\n7\n8.0\n2.5\n1e30\n")
    frame = pd.DataFrame({"code": pd.Series([1, 7, Decimal(7), 8.0, 2.5, 1e30], dtype=object)})
    for data in (path, frame):
        (axis,) = seen(data, domain).axes
        labels = [(label.label, label.rows) for label in axis.labels]
        assert labels == [("(another number)", 2), ("7", 2), ("8", 1)]
        assert (axis.missing, axis.unmatched, axis.n_labels) == (0, 5, 3)


# --- labels that are not listed -------------------------------------------------------------------


def test_further_labels_are_counted_and_shown_on_demand() -> None:
    long = ["x" * 70 + end for end in "abc"]
    words = [word for n in range(30) for word in [f"word {n}"] * (n + 1)] + long
    domain = sf.Domain(kind=sf.Categories(["Word 3", "word"]))
    publisher = sf.Publisher(sf.source(pa.table({"kind": words}), domain, name="w"), budget="1")
    brief = publisher.check()
    (axis,) = brief.axes
    assert (len(axis.labels), axis.n_labels) == (SHOWN, 33)
    shown = " ".join(str(brief).split())
    assert "and 28 further labels; all_labels=True (command line: --all-labels) shows them" in shown
    every = publisher.check(all_labels=True)
    (axis,) = every.axes
    assert len(axis.labels) == axis.n_labels == 33
    assert {label.label for label in axis.labels if label.rows == 1} == {"word 0", "x" * 60 + "..."}
    assert "'word 3': 4 rows; nearest listed: 'Word 3'" in str(every)
    assert "further" not in str(every)
    # Never in a file: JSON keeps to the most frequent ones.
    assert len(json.loads(every.to_json())["axes"][0]["labels"]) == SHOWN
    assert publisher.remaining == 1


@pytest.mark.parametrize(
    "unit", [{}, {"person": "p", "rows_per_person": 4}, {"person": "p", "neighbours": "replace"}]
)
def test_keys_are_offered_at_the_price_of_their_preview(unit: dict[str, Any]) -> None:
    frame = pa.table({"kind": ["a", "b", "c"], "p": [1, 2, 3]})
    source = sf.source(frame, {"kind": sf.Categories(["a"])}, name="k", **unit)
    found = sf.Publisher(source, budget="1").check()
    preview = sf.preview(
        sf.Histogram("kind"),
        domain={"kind": sf.Keys()},
        unit=source.unit,
        epsilon="0.5",
        delta="1e-6",
    )
    (needed,) = re.findall(r"a label held by [0-9,]+ rows is shown with probability", found.offer)
    assert needed.replace("label", "key") in str(preview)
    assert "epsilon = 0.5, delta = 0.000001" in found.offer
    assert "declare sf.Keys() (command line: --axis 'kind=*'" in found.offer
    listed = sf.source(frame, {"kind": sf.Categories(["a", "b", "c"])}, name="l")
    assert sf.Publisher(listed, budget="1").check().offer == ""


def test_keys_that_would_never_be_shown_are_offered_with_what_stands_in_the_way() -> None:
    frame = pa.table({"kind": ["b"], "p": [1]})
    source = sf.source(
        frame, {"kind": sf.Categories(["a"])}, person="p", rows_per_person=2**30, name="k"
    )
    assert "thousands of rows to keep one key" in sf.Publisher(source, budget="1").check().offer
