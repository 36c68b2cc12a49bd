"""Proofs and receipts stand once, collapsed, at the end; a page for a board leaves them out."""

from reports.making import answered, receipted
from sfumato.questions.histogram import Histogram
from sfumato.reports import page
from sfumato.reports import sections as proofs


def test_what_answers_share_stands_once():
    plan = [
        receipted(answered(Histogram(axis)), part=f"{i} of 2")
        for i, axis in enumerate(("kind", "age"), 1)
    ]
    found = proofs.proofs([*plan, answered(Histogram("kind"))], ["a", "b", "c"])
    assert [len(shared.answers) for shared in found.receipts] == [2, 1]
    assert [answer for answer, _ in found.receipts[0].answers] == ["a", "b"]
    assert [len(shared.answers) for shared in found.guarantees] == [3]
    assert page.render(plan).count("e" * 64) == 1


def test_they_are_collapsed_and_come_last(text):
    start = text.index('<h2 id="proofs">')
    assert "<h2" not in text[start + 1 :]
    assert "Holds because" not in text[:start]
    assert "<details open>" not in text[start:]
    assert text[start:].count("<details>") == 2


def test_a_board_is_shown_neither_proofs_nor_hashes_nor_long_tables(releases, text):
    board = page.render(releases, "Trips", "board")
    for technical in ("e" * 64, "d" * 64, "Holds because", "First 200 of 300 rows"):
        assert technical in text
        assert technical not in board
    assert "The table has 300 rows. The technical report shows it." in board
    for kept in ("What was spent", "Which rows were counted", "within ±", "What one person risks"):
        assert kept in board
