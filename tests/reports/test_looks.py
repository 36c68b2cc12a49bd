"""Styles that pictures share are said once, and nothing else changes."""

import re

from reports.making import answered, receipted
from sfumato.questions.histogram import Histogram
from sfumato.reports import headings as looks
from sfumato.reports import page


def _expanded(text):
    """The page with each class replaced by what it stands for."""
    rules = dict(re.findall(r"^\.(a\d+)\{(.*)\}", text, re.MULTILINE))
    return re.sub(r' class="(a\d+)"', lambda found: f' style="{rules[found[1]]}"', text)


def test_every_part_looks_as_it_did():
    parts = '<path d="M0 0" style="fill: none"/>' * 3 + '<text style="color: red" x="1">a</text>'
    text = f"<style>p {{}}\n</style>{parts}"
    made = looks.shared(text)
    assert made.count("fill: none") == 1
    assert 'style="color: red"' in made
    assert _expanded(made).partition("</style>")[2] == parts


def test_what_has_a_class_of_its_own_keeps_its_style():
    text = "<style></style>" + '<svg class="x" style="a: b"></svg>' * 4
    assert looks.shared(text) == text


def test_many_answers_make_a_page_of_moderate_size():
    """A hundred pictures of ten bins: about 10 kB for each, in both widths."""
    release = receipted(answered(Histogram("age", bins=10)))
    one, many = (len(page.render([release] * count).encode()) for count in (1, 6))
    assert (many - one) / 5 < 20_000
