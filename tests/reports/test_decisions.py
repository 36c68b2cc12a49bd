"""Choices of epsilon and findings of an audit stand on a page, with or without answers."""

import msgspec
import numpy as np

import sfumato as sf
from questions.persons.tables import release_of
from reports.making import Outline
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.reports import page
from sfumato.reports.page import report


def _finding():
    from sfumato.audit import Finding

    return Finding("Histogram", Unit(), PureDP(1), 1.0, 0.9, True, 0.1)


def test_choices_and_windows_stand_beside_answers(releases, decisions):
    text = page.render([releases[0], *decisions])
    outline = Outline(text)
    assert not outline.open
    assert len(outline.ids) == len(set(outline.ids))
    assert text.count('<svg role="img"') == 2 * 3
    assert "epsilon = 0.3351 is the least" in text
    assert "&lt;b&gt;" in text
    assert "<b>, 3 of 4" not in text
    assert "small universes only" in text
    assert "a membership test then reaches an advantage of" in text
    assert text.index("Decision for one mean of") < text.index("It rests on: 3 of 4 records")


def test_a_page_without_answers(decisions, tmp_path):
    text = report(decisions[1], tmp_path / "choice.html").read_text("utf-8")
    assert '<h1 dir="auto">Choosing epsilon</h1>' in text
    assert "What was spent" not in text
    assert "Nothing was released" in text
    assert not Outline(text).open
    assert text == page.render(decisions[1:])


def test_findings_of_an_audit():
    fine = _finding()
    broken = msgspec.structs.replace(fine, subject="Broken <one>", exact=2.0, ok=False)
    text = page.render([fine, broken])
    assert "1 of 2 failed" in text
    assert "Broken &lt;one&gt;" in text
    assert "EXCEEDS" in text
    assert "None of 1 was found to exceed" in page.render([fine])
    assert "no power" not in page.render([fine])
    powerless = msgspec.structs.replace(
        fine, subject="PrivTree", exact=None, sampled=0.0, fault=None
    )
    text = page.render([fine, powerless])
    assert "None of 2 was found to exceed" in text
    assert "For 1 of them this says nothing" in text
    assert "no power" in text


def test_a_recommended_limit_stands_on_a_page(tmp_path):
    rows = np.arange(1, 400) % 30 + 1
    advice = sf.recommend(release_of(rows), sf.Histogram("hour"), epsilon="0.5")
    text = report(advice, tmp_path / "limit.html").read_text("utf-8")
    assert not Outline(text).open
    assert "Which limit on a person? Histogram of hour" in text
    assert f"<b>{advice.limit}</b> rows_per_person" in text
    assert text.count('<svg role="img"') == 2
    assert '<h1 dir="auto">Choosing a limit</h1>' in text
    assert "Nothing on this page is a protected answer" not in text
    assert "The limit follows from a release that was paid for" in text
