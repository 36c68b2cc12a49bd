"""A section shows what its release holds, and nothing else."""

import html
import re

import numpy as np

import sfumato as sf
from reports.making import DOMAIN, answered
from sfumato.answers.release import Release
from sfumato.charts import style
from sfumato.domain.cube import Cube
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.random import PublicSeed
from sfumato.reports import page
from sfumato.reports.page import report


def test_true_counts_do_not_show():
    canary = 86_753_097
    lattice = Histogram("kind").needs(DOMAIN).lattice
    release = Histogram("kind").answer(
        Cube(lattice, np.array([canary, 0, 0])), Unit(), PureDP("0.01"), PublicSeed(4)
    )
    assert release.counts[0] != canary
    shown = page.render([release])
    assert style.number(int(release.counts[0])) in shown
    assert str(canary) not in shown
    assert f"{canary:,}" not in shown


def test_accuracy_is_one_sentence(text, releases):
    each = int(releases[0].accuracy().max())
    every = int(releases[0].accuracy(simultaneous=True).max())
    assert (
        f"Of the rows counted, each count is within ±{each} of the truth with 95% confidence; "
        f"all 30 at once within ±{every}."
    ) in text


def test_the_guarantee_is_printed_whole(text, releases):
    shown = html.unescape(text)
    for line in str(releases[0].guarantee).splitlines():
        heading, sentence = line.split(": ", 1)
        assert sentence in shown or sentence[0].upper() + sentence[1:] in shown
        # Which rows were counted has a place of its own.
        assert heading in text or heading in ("Not covered", "Counted")
    assert shown.count(releases[0].guarantee.counted) == 1
    assert "What is not covered" in text


def test_receipts_and_their_absence_are_shown(text):
    assert "e" * 64 in text
    assert "None: this answer was not charged to an account." in text
    assert "One answer on this page has no receipt" in text


def test_the_table_shows_the_numbers_and_says_where_the_rest_is(text, releases):
    low, high = releases[2].interval()
    for value in (releases[2].values[0], low[0], high[0]):
        assert f"<td>{style.number(int(value))}</td>" in text
    assert "First 200 of 300 rows" in text
    assert "All 300 rows" in text


def test_the_largest_count_is_given_with_the_interval_that_survives_picking(text, releases):
    top = np.unravel_index(np.argmax(releases[0].values), (3, 10))
    low, high = (style.number(int(end[top])) for end in releases[0].interval(simultaneous=True))
    assert f"(between {low} and {high})" in text


def test_a_count_that_is_lost_in_noise_is_not_called_the_largest():
    """The cells of a map have unequal noise: the largest number may be that of the noisiest."""
    release = answered(sf.AutoPartitioner(["lon", "lat"]), PureDP("0.02"))
    low, high = release.interval(simultaneous=True)
    counts = np.asarray(release.values)
    assert low[np.argmax(counts)] <= 0 < max(low)
    top = int(np.argmax(np.where(low > 0, counts, -np.inf)))
    said = html.unescape(page.render([release]))
    assert f"the largest noisy count that can be told from 0 is {style.number(counts[top])}" in said
    assert f"(between {style.number(low[top])} and {style.number(high[top])})" in said


def test_an_answer_and_the_front_page_count_the_same_numbers_as_lost_in_noise():
    """Fewer stand out if all are judged at once: then both numbers are said, and named."""
    release = answered(Histogram("age", bins=50), PureDP("0.05"))
    alone, together = (
        int((release.interval(simultaneous=every)[0] > 0).sum()) for every in (False, True)
    )
    assert 0 < together < alone < 50
    said = html.unescape(page.render([release]))
    assert f"{alone} of 50 counts stand out from the noise, each judged alone; " in said
    assert f"judged all at once, {together}." in said
    assert (
        f"{alone} of 50 numbers stand out from the noise; for the others it is too large." in said
    )


class Bare(Release, frozen=True, kw_only=True, eq=False):
    """An answer without a picture and without intervals."""

    title = "Something else"
    values = np.array([1.5])


def test_the_contents_count_answers_and_further_sections_apart(releases, decisions):
    bare = Bare(guarantee=releases[0].guarantee)
    one = "Contents: 12 answers and 1 further section<"
    assert one in page.render([bare] * 12 + decisions[1:])
    assert "Contents: 13 answers<" in page.render([bare] * 13)


def test_kinds_without_picture_or_intervals_are_shown_by_what_they_have(releases):
    shown = page.render([Bare(guarantee=releases[0].guarantee)])
    assert "Something else" in shown
    assert "<svg" not in shown
    assert 'class="accuracy"' not in shown
    assert "No answer states how accurate it is." in shown


def test_every_picture_has_a_title_and_a_description(text):
    pictures = re.findall(r'<svg role="img".*?</svg>', text, re.DOTALL)
    # Three answers, wide and narrow, and the map of the front page.
    assert len(pictures) == 7
    for picture in pictures:
        assert re.search(r"<title[^>]*>[^<]+</title>\s*<desc[^>]*>[^<]{20,}</desc>", picture)


def test_a_page_says_where_an_answer_comes_from(tmp_path):
    """A loaded release may have been edited, and is marked unless its signature fits."""
    source = sf.source(np.zeros((50, 1)), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget="9") as publisher:
        now = publisher.release(sf.Histogram("x"), epsilon="1")
        again = publisher.release(sf.Histogram("x"), epsilon="1")
        publisher.ledger.signer(create=True)
        signed = publisher.release(sf.Histogram("x", bins=3), epsilon="1")
    pages = {}
    for name, release in {"now": now, "again": again, "signed": signed}.items():
        pages[name] = report([release], tmp_path / "now.html").read_text()
        loaded = sf.load(release.save(tmp_path / "r.json"))
        pages[f"{name}, loaded"] = report([loaded], tmp_path / "loaded.html").read_text()
    assert {name for name, page in pages.items() if "not verified" in page} == {
        "now, loaded",
        "again, loaded",
    }
    assert {name for name, page in pages.items() if "signed with the key" in page} == {
        "signed, loaded"
    }
    assert {name for name, page in pages.items() if "nothing was spent for it again" in page} == {
        "again"
    }
