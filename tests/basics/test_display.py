"""What people are shown is short, escaped and the same everywhere."""

from __future__ import annotations

import pytest

from sfumato.basics.text import Table, card, cell, facts, grid, line, plain, structs
from sfumato.domain.domain import Categories, Domain, Interval, Keys

HOSTILE = '<script>alert("x")</script>\u0000&'


@pytest.mark.parametrize(
    ("value", "amount", "on_axis", "label"),
    [
        (2003, "2,003", "2003", "2003"),
        (-20_030, "−20,030", "−20,030", "−20030"),
        (2003.5, "2,003.5", "2003.5", "2003.5"),
        (31_415.93, "31,415.9", "31,415.9", "31415.9"),
        (0.1 + 0.2, "0.3", "0.3", "0.3"),
        (float("nan"), "–", "–", "–"),
        (None, "–", "–", "–"),
        (True, "yes", "yes", "yes"),
        ("-5 to 0", "-5 to 0", "-5 to 0", "-5 to 0"),
    ],
)
def test_thousands_are_parted_in_amounts_and_not_in_years(value, amount, on_axis, label):
    assert cell(value) == amount
    assert cell(value, "value") == on_axis
    assert cell(value, "label") == label


def test_long_and_steering_text_is_cut_and_tamed():
    assert plain("a\tb\nc") == "a b c"
    assert plain("x" * 40) == "x" * 27 + "…"
    assert len(cell("y" * 500)) == 80


def test_every_text_is_escaped():
    table = Table((HOSTILE,), (True,), ((HOSTILE,),), 3)
    made = card(HOSTILE, line(HOSTILE), facts([(HOSTILE, HOSTILE)]), grid(table))
    assert "<script" not in made
    assert "\0" not in made
    assert made.count("&lt;script&gt;") == 6
    assert made.count("&amp;") == 6
    assert "… and 2 more rows" in made
    assert made.count("<div") == made.count("</div>") == 1


def test_a_card_takes_fonts_and_colours_from_its_page():
    made = card("Title", line("within +-3"))
    assert "color" not in made
    assert "font-family" not in made
    assert "http" not in made
    assert "within ±3" in made


def test_a_domain_says_what_is_declared_and_leaves_out_what_is_not():
    domain = Domain(
        year=Interval(1990, 2010, step=1),
        day=Interval("2024-01-01", "2025-01-01"),
        kind=Categories([str(i) for i in range(20)], other="else"),
        shop=Keys(),
    )
    made = structs(domain)
    assert "1990 to 2010; step: 1" in made
    assert "2024-01-01 to 2025-01-01" in made
    assert "10, 11 and 8 more; other: else" in made
    assert "None" not in made
    assert domain._repr_html_().count(made) == 1
