"""A line of evidence is dropped only by a run of all long tests, which lacks its test."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.evidence import line_of, page_of

OLD = {
    name: line_of(name, "passed", 1.25, "abc") for name in ("tests/a.py::b[`|`]", "tests/z.py::d")
}
NEW = {"tests/m.py::c": line_of("tests/m.py::c", "passed", 3, "def")}


def lines(page: str) -> list[str]:
    return page.splitlines()[6:]


def test_a_run_of_some_tests_keeps_the_lines_of_all_others() -> None:
    before = page_of("", OLD, ran_all=True)
    assert lines(before) == list(OLD.values())
    after = page_of(before, NEW, ran_all=False)
    assert lines(after) == [OLD["tests/a.py::b[`|`]"], *NEW.values(), OLD["tests/z.py::d"]]
    again = {"tests/z.py::d": line_of("tests/z.py::d", "failed", 2, "def")}
    assert lines(page_of(after, again, ran_all=False))[-1] == again["tests/z.py::d"]


def test_a_run_of_all_tests_has_their_lines_alone() -> None:
    before = page_of("", OLD, ran_all=True)
    assert lines(page_of(before, NEW, ran_all=True)) == list(NEW.values())


def test_the_page_that_is_published_is_read_as_a_whole() -> None:
    page = Path(__file__).parents[2] / "docs" / "evidence" / "deep.md"
    if not page.exists():
        pytest.skip("the long tests were not run here")
    text = page.read_text("utf-8")
    assert lines(page_of(text, {}, ran_all=False)) == lines(text)
