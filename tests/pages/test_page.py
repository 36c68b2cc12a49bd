"""A page loads nothing, runs nothing, and is the same for the same releases."""

import re
import shutil
import subprocess

import pytest

import sfumato as sf
from pages.making import Outline, answered, receipted
from sfumato.charts import style
from sfumato.domain import Categories, Domain
from sfumato.errors import DataError, UsageError
from sfumato.histogram import Histogram
from sfumato.pages import page, report
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from support.workers import HANG


def _finding():
    from sfumato.audit import Finding

    return Finding("Histogram", Unit(), PureDP(1), 1.0, 0.9, True, 0.1)


def test_nothing_is_loaded_from_anywhere(text):
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert not re.search(r'\b(?:src|href)="(?!#|data:image/png;base64,)', text)


def test_nothing_runs(text):
    policy = (
        '<meta http-equiv="Content-Security-Policy" '
        """content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
    )
    assert policy in text
    assert text.index(policy) < text.index("<style>")
    assert "<script" not in text.lower()
    assert not [name for name, _ in Outline(text).attributes if name.startswith("on")]


def test_hostile_labels_are_shown_and_not_obeyed():
    evil = '<script>alert("1")</script>'
    domain = Domain(
        {evil: Categories([evil, "</svg><img src=x onerror=alert(1)>", "'\"&$\\frac{"])}
    )
    release = receipted(
        answered(Histogram(evil), domain=domain), account=evil, source=evil, key="</dl>"
    )
    shown = page.render([release], evil)
    assert "<script" not in shown
    assert "<img" not in shown
    assert "&lt;script&gt;" in shown
    assert Outline(shown).open == []


def test_the_same_releases_give_the_same_bytes(releases, text, tmp_path):
    assert report(iter(releases), tmp_path / "a.html", "Trips").read_bytes() == text.encode()


def test_a_saved_and_loaded_release_gives_the_same_page():
    from sfumato.answers.codec import from_bytes, to_bytes
    from sfumato.histogram import HistogramRelease

    release = receipted(answered(Histogram("kind")))
    assert page.render([from_bytes(to_bytes(release), HistogramRelease)]) == page.render([release])


def test_the_introduction_is_true_of_answers_that_are_no_counts():
    """A median is no count with noise, and an account may not be the only one of its data."""
    shown = page.render([answered(sf.Quantiles("age"))])
    assert "such as a median, was itself drawn at random" in shown
    assert "small random amount" not in shown
    # A page may hold answers at epsilon 50.
    assert "stays hidden" not in " ".join(shown.split())
    assert "What several accounts spend on the same people adds up." in shown


def test_swapped_arguments_are_refused_in_one_sentence(releases):
    with pytest.raises(UsageError, match="not a path"):
        report("report.html", list(releases))


def test_dates_come_from_the_receipts(text, releases):
    assert '<time datetime="2026-03-01">' in text
    assert '<time datetime="2026-03-02">' in text
    assert "<time" not in page.render([releases[2]])


def test_releases_from_a_public_seed_are_marked(text):
    assert "NOT PRIVATE" not in text
    shown = page.render([answered(Histogram("kind"), private=False), answered(Histogram("age"))])
    assert shown.count('<div class="banner"') == 2
    assert "Do not publish this page." in shown
    assert "whatever else a reader knows" not in shown


def test_structure(text):
    outline = Outline(text)
    assert outline.open == []
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert len(outline.ids) == len(set(outline.ids))
    refs = [
        value[1:] for name, value in outline.attributes if name == "href" and value.startswith("#")
    ]
    refs += [
        word
        for name, value in outline.attributes
        if name == "aria-labelledby"
        for word in value.split()
    ]
    assert set(refs) <= set(outline.ids)
    assert '<html lang="en">' in text
    assert text.isascii() or '<meta charset="utf-8">' in text[:200]


def _colours(css, block):
    return dict(
        re.findall(
            r"--([\w-]+): (#[0-9a-f]{6})",
            re.search(block + r".*?:root \{(.*?)\}", css, re.DOTALL)[1],
        )
    )


@pytest.mark.parametrize("block", ["^", r"prefers-color-scheme: dark\)", "@media print"])
def test_contrast(text, block):
    colours = _colours(re.search(r"<style>\n(.*?)</style>", text, re.DOTALL)[1], block)
    pairs = [
        (ink, ground) for ink in ("ink", "muted", "accent") for ground in ("paper", "card", "tint")
    ] + [("warn-ink", "warn-paper")]
    assert min(style.contrast(colours[ink], colours[ground]) for ink, ground in pairs) >= 4.5


def test_size(text, releases):
    assert len(text.encode()) < 450_000
    assert len(page.render([releases[0]]).encode()) < 120_000


def test_the_template_names_only_colours_and_fonts_of_its_own(text):
    css = re.search(r"<style>\n(.*?)</style>", text, re.DOTALL)[1]
    assert "@font-face" not in css
    assert "break-inside: avoid" in css


@pytest.mark.parametrize("items", ["a release", 3, None, [], [3], ["x"]])
def test_only_releases_are_reported(items, tmp_path):
    with pytest.raises(UsageError):
        report(items, tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_path_that_cannot_be_written_is_a_data_error(releases, tmp_path):
    with pytest.raises(DataError) as refused:
        report(releases[2], tmp_path / "nowhere" / "r.html")
    assert refused.value.remedy == "Choose a path that can be written"


def test_one_release_need_not_be_a_list(releases, tmp_path):
    assert report(releases[2], tmp_path / "r.html").read_text("utf-8").startswith("<!doctype html>")


PROBE = """<!doctype html><body style="margin:0">
<iframe id=f src="report.html" style="width:390px;height:3000px;border:0"></iframe>
<pre id=o></pre>
<script>
f.onload = () => {
  const d = f.contentDocument;
  const out = [...d.querySelectorAll('body *')].filter(
    x => !x.closest('.scroll,svg,.skip') && x.getBoundingClientRect().right > 390.5);
  o.textContent = 'wide ' + d.documentElement.scrollWidth + ' outside ' + out.length;
}
</script>"""


@pytest.mark.deep
def test_a_phone_needs_no_sideways_scrolling(releases, decisions, tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed")
    path = report([releases, decisions, _finding()], tmp_path / "report.html")
    path.write_text(path.read_text("utf-8").replace("<details>", "<details open>"), "utf-8")
    (tmp_path / "probe.html").write_text(PROBE, "utf-8")
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--allow-file-access-from-files",
    ]
    command += [
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=8000",
        "--dump-dom",
        (tmp_path / "probe.html").as_uri(),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True).stdout
    wide, outside = (int(n) for n in re.search(r"wide (\d+) outside (\d+)", shown).groups())
    assert wide <= 390
    assert outside == 0


def test_lists_may_be_among_the_items(releases, tmp_path):
    fine = _finding()
    assert (
        report([[fine], fine, ([fine],)], tmp_path / "all.html").read_text("utf-8").count("</tr>")
        == 4
    )
    for wrong in ([], [[]], [releases[0], 3], "text", {"a": releases[0]}, [None]):
        with pytest.raises(UsageError):
            report(wrong, tmp_path / "never.html")
    assert not (tmp_path / "never.html").exists()


def test_a_report_is_for_one_of_two_audiences(releases, tmp_path):
    board = report(releases, tmp_path / "board.html", audience="board").read_text("utf-8")
    assert board == page.render(releases, audience="board") != page.render(releases)
    with pytest.raises(UsageError, match='Write "technical" or "board"'):
        report(releases, tmp_path / "never.html", audience="press")
    assert not (tmp_path / "never.html").exists()
