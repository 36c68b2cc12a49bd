"""Every form of a table gives the same cubes, bit for bit, also where persons' rows are cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance import forms
from conformance.forms import ENGINES, LIMITS, QUESTIONS, ROWS, answers
from conformance.kinds import names_of_readers
from sfumato.data import count, registry, source

FORMS = forms.FORMS | ENGINES
Answers = dict[tuple[str, str], object]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What is counted of a Parquet file."""
    path = tmp_path_factory.mktemp("forms") / "t.parquet"
    pq.write_table(ROWS, path)
    return answers(lambda: path)


def forms_and_limits() -> Iterator[object]:
    """Each form within two of the limits, in turn; within all of them in the long tests."""
    for number, form in enumerate(FORMS):
        two = [list(LIMITS)[(number + more) % len(LIMITS)] for more in (0, 2)]
        yield pytest.param(form, two, id=form)
        yield pytest.param(form, list(LIMITS), id=f"{form}, all limits", marks=pytest.mark.deep)


@pytest.mark.parametrize(("form", "limits"), list(forms_and_limits()))
def test_every_form_gives_the_same_cubes(
    form: str, limits: list[str], expected: Answers, tmp_path: Path
) -> None:
    found = answers(lambda: FORMS[form](tmp_path), limits)
    differ = [what for what in product(limits, QUESTIONS) if found[what] != expected[what]]
    assert not differ


def _total(answer: object) -> int:
    cube: Any = answer
    return sum(cube[0][0][1])


def test_the_limits_cut_each_in_its_own_way(expected: Answers) -> None:
    of_rows = [name for name, need in QUESTIONS.items() if need.counted == "rows"]
    needs = [QUESTIONS[question] for question in of_rows]
    for question, cube in zip(of_rows, count(source(ROWS, forms.DOMAIN), needs), strict=True):
        for limit in LIMITS:
            assert 0 < _total(expected[limit, question]) < cube.total, (limit, question)
    for question in QUESTIONS:
        several = [repr(expected[limit, question]) for limit in LIMITS]
        assert len(set(several)) == len(several), question


NEAR_MISSES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "ids with a point": ("who", lambda ids: [None if i is None else f"{i}.0" for i in ids]),
    "ids with a blank": ("who", lambda ids: [None if i is None else f"{i} " for i in ids]),
    "other ids": ("who", lambda ids: [None if i is None else i + 1 for i in ids]),
    "other values": ("x", lambda x: [None if v is None else math.nextafter(v, 9) for v in x]),
}


@pytest.mark.parametrize("miss", NEAR_MISSES)
def test_a_near_miss_is_seen(miss: str, expected: Answers) -> None:
    """Persons or values that are nearly the same keep other rows."""
    name, changed = NEAR_MISSES[miss]
    column = pa.array(changed(ROWS[name].to_pylist()))
    table = ROWS.set_column(ROWS.column_names.index(name), name, column)
    assert answers(lambda: table, ["rows"])["rows", "rows"] != expected["rows", "rows"]


def test_every_reader_is_among_the_forms(tmp_path: Path) -> None:
    # Spark has one session for all of its tests, and an array holds numbers alone.
    seen = {"SparkTable", "NumpyArray"}
    for number, made in enumerate(FORMS.values()):
        (tmp_path / str(number)).mkdir()
        data = made(tmp_path / str(number))
        seen.add(type(registry.open_reader(data, tuple(forms.DOMAIN), "who")).__name__)
    assert seen - {"TableInTasks"} == names_of_readers()
