"""The checklist answers what the releases know, marks the rest, and loads nothing."""

from __future__ import annotations

import re

import pytest

import sfumato as sf
from reports.disclosure import visits
from reports.making import Outline
from sfumato.publishing.verifying import Publication
from sfumato.reports.disclosure.disclose import render
from sfumato.reports.disclosure.entry import entry_tree as entry
from sfumato.reports.disclosure.evidence import gathered


@pytest.fixture(scope="module")
def found(releases):
    return gathered(releases)


@pytest.fixture(scope="module")
def page(found):
    return render(found, entry(found, Publication(), "visits"))


def test_most_questions_are_answered(page):
    questions = page.split("<h3>")[1:]
    assert len(questions) == 18
    assert sum("To be answered" in question for question in questions) == 5
    for question in questions:
        answers = re.findall(r"<li[^>]*>(.*)</li>", question)
        assert answers
        assert all(answers)
        assert ("To be answered" in question) == any("TODO: " in answer for answer in answers)


def test_the_page_is_whole_and_loads_nothing(page):
    outline = Outline(page)
    assert outline.open == []
    assert outline.headings[0] == 1
    assert not any(name in {"src", "href"} for name, _ in outline.attributes)
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("To be answered") == 5


def test_the_page_speaks_of_these_releases(page, releases):
    assert visits.NAME in page
    assert "Epsilon = 2, delta = 0.000001." in page
    for release in releases:
        assert release.heading in page
    assert re.search(r"13 of 18 questions are answered", page)


def test_a_large_budget_is_not_passed_over(tmp_path):
    with sf.Publisher(visits.source(), budget="50") as publisher:
        found = gathered([publisher.release(sf.Histogram("age"), epsilon="50")])
    page = render(found, entry(found, Publication(), "visits"))
    assert "Epsilon above 10 protects hardly anyone" in page
