"""The page: sealed, deterministic, legible, honest, and made of nothing but the releases."""

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.answers.receipt import Receipt
from sfumato.answers.release import Release
from sfumato.charts import style
from sfumato.cube import Cube
from sfumato.domain import Categories, Domain, Interval
from sfumato.errors import DataError, UsageError
from sfumato.histogram import Histogram
from sfumato.pages import page, report
from sfumato.partition.uniform import UniformPartitioner
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed
from support.workers import HANG

DOMAIN = Domain(
    kind=Categories(["a", "b", "c"]),
    age=Interval(0, 100),
    lon=Interval(-74.3, -73.6),
    lat=Interval(40.5, 40.95),
)
VOID = {"meta", "link", "br", "hr", "img", "input", "path", "use", "image"}


def answered(question, cost=None, domain=DOMAIN, private=True):
    lattice = question.needs(domain).lattice
    rng = np.random.default_rng(2)
    cells = np.stack(
        [(rng.beta(2, 4, 4000) * axis.size).astype(np.int64) for axis in lattice.axes], axis=1
    )
    release = question.answer(
        Cube.of_cells(lattice, cells), Unit(), cost or PureDP("0.5"), PublicSeed(9)
    )
    return msgspec.structs.replace(
        release, guarantee=msgspec.structs.replace(release.guarantee, private=private)
    )


def receipted(release, entry=1, part="1 of 1", **changes):
    plain = {
        "account": "trips",
        "key": "k",
        "digest": "d" * 64,
        "entry_hash": "e" * 64,
        "time": f"2026-03-0{entry}T09:15:22Z",
    }
    plain |= {
        "charged": str(release.guarantee.measure),
        "source": "trips.parquet",
        "version": "0.1.0",
    }
    return msgspec.structs.replace(
        release, receipt=Receipt(entry=entry, part=part, **(plain | changes))
    )


@pytest.fixture(scope="module")
def releases():
    return [
        receipted(answered(Histogram(["kind", "age"], bins=10))),
        receipted(
            answered(UniformPartitioner(["lon", "lat"], partitions=400)),
            entry=2,
            time="2026-03-02T10:00:00Z",
        ),
        answered(Histogram("age", bins=300)),
    ]


@pytest.fixture(scope="module")
def text(releases):
    return page.render(releases, "Trips")


class Outline(HTMLParser):
    """Headings in order, ids, references, and whether every element is closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.headings, self.ids, self.attributes, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


# --- sealed -----------------------------------------------------------------------------------------------------------


def test_nothing_is_loaded_from_anywhere(text):
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert not re.search(r'\b(?:src|href)="(?!#|data:image/png;base64,)', text)


def test_nothing_runs(text):
    policy = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
    assert policy in text
    assert text.index(policy) < text.index("<style>")
    assert "<script" not in text.lower()
    assert not [name for name, _ in Outline(text).attributes if name.startswith("on")]


def test_hostile_words_are_shown_and_not_obeyed():
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


# --- deterministic, and nothing but the releases ----------------------------------------------------------------------


def test_the_same_releases_give_the_same_bytes(releases, text, tmp_path):
    assert report(iter(releases), tmp_path / "a.html", "Trips").read_bytes() == text.encode()


def test_a_saved_and_loaded_release_gives_the_same_page():
    from sfumato.answers.codec import from_bytes, to_bytes
    from sfumato.histogram import HistogramRelease

    release = receipted(answered(Histogram("kind")))
    assert page.render([from_bytes(to_bytes(release), HistogramRelease)]) == page.render([release])


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


def test_the_introduction_is_true_of_answers_that_are_no_counts():
    """A median has no noise added to a true count, and an account is not the only one of its data set."""
    shown = page.render([answered(sf.Quantiles("age"))])
    assert "such as a median, was itself drawn at random" in shown
    assert "small random amount" not in shown
    assert "stays hidden" not in " ".join(shown.split())  # a page may hold answers at epsilon 50
    assert "What several accounts spend on the same people adds up." in shown


def test_answers_that_protect_hardly_anyone_together_say_so():
    """Each of them stays below 10, and none of them warns."""
    four = [receipted(answered(Histogram("age", bins=n), PureDP("3")), n) for n in range(2, 6)]
    warning = "bounded by epsilon = 12. Epsilon above 10 protects hardly anyone"
    assert warning in page.render(four)
    assert "hardly anyone" not in page.render(four[:3])


def test_the_arguments_swapped_are_one_sentence(releases):
    with pytest.raises(UsageError, match="not a path"):
        report("report.html", list(releases))


def test_dates_come_from_the_receipts(text, releases):
    assert '<time datetime="2026-03-01">' in text
    assert '<time datetime="2026-03-02">' in text
    assert "<time" not in page.render([releases[2]])


# --- what it says -----------------------------------------------------------------------------------------------------


def test_accuracy_is_one_sentence(text, releases):
    each, every = (int(releases[0].accuracy(simultaneous=s).max()) for s in (False, True))
    sentence = f"Of the rows counted, each count is within ±{each} of the truth with 95% confidence; all 30 at once within ±{every}."
    assert sentence in text


def test_the_guarantee_is_printed_as_it_prints_itself(text, releases):
    shown = html.unescape(text)
    for line in str(releases[0].guarantee).splitlines():
        heading, sentence = line.split(": ", 1)
        assert sentence in shown or sentence[0].upper() + sentence[1:] in shown
        assert heading in text or heading == "Not covered"
    assert "What is not covered" in text


def test_receipts_and_their_absence_are_shown(text):
    assert "e" * 64 in text
    assert "None: this answer was not charged to an account." in text
    assert "One answer on this page has no receipt" in text


def test_spending_is_listed_once_per_charge():
    parts = [
        receipted(answered(Histogram(axis)), part=f"{i} of 2", charged="epsilon = 1")
        for i, axis in enumerate(("kind", "age"), 1)
    ]
    shown = page.render([*parts, parts[0]])  # given twice, paid for once
    table = shown[shown.index("What was spent") : shown.index("Only answers shown")]
    assert table.count("2026-03-01, 09:15 UTC") == 1
    assert "Taken together, the answers on this page are bounded by epsilon = 1." in table
    assert "It protects any single row, added or removed." in table


def test_costs_under_several_limits_of_one_person_add_up_and_others_do_not():
    """An aircraft is one person under a limit of 400 rows and of 50."""
    from sfumato.pages import spending

    def account(*units):
        made = [receipted(answered(Histogram("kind")), entry=i) for i in range(1, len(units) + 1)]
        guarantees = [
            msgspec.structs.replace(one.guarantee, unit=unit)
            for one, unit in zip(made, units, strict=True)
        ]
        (found,) = spending.accounts(
            [
                msgspec.structs.replace(one, guarantee=g)
                for one, g in zip(made, guarantees, strict=True)
            ]
        )
        return found

    assert account(Unit(400, person="plane"), Unit(50, person="plane")).together == "epsilon = 1"
    assert account(Unit(400, person="plane"), Unit(50, person="plane")).protects.startswith(
        "It protects any one plane"
    )
    for other in (Unit(50, "replace", "plane"), Unit(50, person="pilot"), Unit()):
        assert account(Unit(400, person="plane"), other).together is None
        assert "do not add up" in account(Unit(400, person="plane"), other).protects


def test_costs_of_different_measures_are_not_added():
    mixed = [
        receipted(answered(Histogram("kind"))),
        receipted(answered(Histogram("age"), ZCDP("0.1")), entry=2),
    ]
    assert "Taken together" not in page.render(mixed)


def test_the_table_shows_the_numbers_and_says_where_the_rest_is(text, releases):
    low, high = releases[0].interval()
    for value in (releases[0].values[0, 0], low[0, 0], high[0, 0]):
        assert f"<td>{style.number(int(value))}</td>" in text
    assert "First 200 of 300 rows" in text
    assert "Table of 30 rows" in text
    assert "All 300 rows" in text


def test_the_largest_count_is_given_with_the_interval_that_survives_picking(text, releases):
    top = np.unravel_index(np.argmax(releases[0].values), (3, 10))
    low, high = (style.number(int(end[top])) for end in releases[0].interval(simultaneous=True))
    assert f"(between {low} and {high})" in text


def test_releases_from_a_public_seed_are_marked(text):
    assert "NOT PRIVATE" not in text
    shown = page.render([answered(Histogram("kind"), private=False), answered(Histogram("age"))])
    assert shown.count('<div class="banner"') == 2
    assert "Do not publish this page." in shown
    assert "whatever else a reader knows" not in shown


def test_kinds_without_picture_or_intervals_are_shown_by_what_they_have(releases):
    class Bare(Release, frozen=True, kw_only=True, eq=False):
        title = "Something else"
        values = np.array([1.5])

    shown = page.render([Bare(guarantee=releases[0].guarantee)])
    assert "Something else" in shown
    assert "<svg" not in shown
    assert "How accurate it is" not in shown


# --- how it looks -----------------------------------------------------------------------------------------------------


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


def test_every_picture_has_a_title_and_a_description(text):
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == 6
    for picture in pictures:
        assert re.search(r"<title[^>]*>[^<]+</title>\s*<desc[^>]*>[^<]{20,}</desc>", picture)


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


# --- refusals ---------------------------------------------------------------------------------------------------------


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


# --- in a browser -----------------------------------------------------------------------------------------------------

PROBE = """<!doctype html><body style="margin:0"><iframe id=f src="report.html" style="width:390px;height:3000px;border:0"></iframe>
<pre id=o></pre><script>f.onload=()=>{const d=f.contentDocument;
const out=[...d.querySelectorAll('body *')].filter(x=>!x.closest('.scroll,svg,.skip')&&x.getBoundingClientRect().right>390.5);
o.textContent='wide '+d.documentElement.scrollWidth+' outside '+out.length}</script>"""


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


# --- choices, windows and findings ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def decisions():
    import sfumato as sf

    wish, risk = sf.Within(20, simultaneous=True), sf.Risk(prior=0.01, posterior=0.05)
    window = sf.window(
        Histogram("age", bins=50), domain=DOMAIN, unit=Unit(), accuracy=wish, risk=risk
    )
    return [sf.choose({"<b>": [1, 2, 3, 10]}, size=3), window]


def test_choices_and_windows_stand_beside_answers(releases, decisions):
    text = page.render([releases[0], *decisions])
    outline = Outline(text)
    assert not outline.open
    assert len(outline.ids) == len(set(outline.ids))
    assert text.count("<svg") == 2 * 3
    assert "epsilon = 0.3351 is the least" in text
    assert "&lt;b&gt;" in text
    assert "<b>, 3 of 4" not in text
    assert "small universes only" in text
    assert "a membership test then reaches an advantage of" in text
    assert text.index("Decision for one mean of") < text.index("It rests on: 3 of 4 records")


def test_a_page_without_answers(decisions, tmp_path):
    text = report(decisions[1], tmp_path / "choice.html").read_text("utf-8")
    assert "<h1>Choosing epsilon</h1>" in text
    assert "What was spent" not in text
    assert "Nothing was released" in text
    assert not Outline(text).open
    assert text == page.render(decisions[1:])


def _finding():
    from sfumato.audit import Finding

    return Finding("Histogram", Unit(), PureDP(1), 1.0, 0.9, True, 0.1)


def test_findings_of_an_audit():
    fine = _finding()
    broken = msgspec.structs.replace(fine, subject="Broken <twin>", exact=2.0, ok=False)
    text = page.render([fine, broken])
    assert "1 of 2 failed" in text
    assert "Broken &lt;twin&gt;" in text
    assert "EXCEEDS" in text
    assert "None of 1 was seen" in page.render([fine])
    assert "no power" not in page.render([fine])
    blind = msgspec.structs.replace(fine, subject="PrivTree", exact=None, sampled=0.0, fault=None)
    text = page.render([fine, blind])
    assert "None of 2 was seen" in text
    assert "Of 1 that says nothing" in text
    assert "no power" in text


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


def test_a_page_says_where_an_answer_comes_from(tmp_path):
    """One that anyone may have edited is not shown like one that was just published; a stored one says so."""
    source = sf.source(np.zeros((50, 1)), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget="9") as publisher:
        now = publisher.release(sf.Histogram("x"), epsilon="1")
        again = publisher.release(sf.Histogram("x"), epsilon="1")
        publisher.ledger.signer(create=True)
        signed = publisher.release(sf.Histogram("x", bins=3), epsilon="1")
    said = {}
    for name, release in {"now": now, "again": again, "signed": signed}.items():
        said[name] = report([release], tmp_path / "now.html").read_text()
        loaded = sf.load(release.save(tmp_path / "r.json"))
        said[f"{name}, loaded"] = report([loaded], tmp_path / "loaded.html").read_text()
    assert {name for name, page in said.items() if "not verified" in page} == {
        "now, loaded",
        "again, loaded",
    }
    assert {name for name, page in said.items() if "signed with the key" in page} == {
        "signed, loaded"
    }
    assert {name for name, page in said.items() if "nothing was spent for it again" in page} == {
        "again"
    }
