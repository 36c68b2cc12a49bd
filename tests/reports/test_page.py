"""A page loads nothing, runs only what enlarges maps, and is the same for the same releases."""

import base64
import hashlib
import re
import shutil
import subprocess

import numpy as np
import pytest

import sfumato as sf
from reports.making import Outline, answered, receipted
from sfumato.charts import style
from sfumato.domain.domain import Categories, Domain, Interval
from sfumato.errors import DataError, UsageError
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.reports import page
from sfumato.reports.page import report
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


def _policy(shown):
    found = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', shown)
    assert len(found) == 1
    assert shown.index("Content-Security-Policy") < shown.index("<style>")
    return found[0]


def test_nothing_runs_on_a_page_without_a_map(releases):
    shown = page.render([releases[0], releases[2]])
    assert _policy(shown) == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert "<script" not in shown.lower()
    assert "it loads nothing and runs nothing" in shown
    assert not [name for name, _ in Outline(shown).attributes if name.startswith("on")]


def test_only_the_script_that_enlarges_maps_may_run(text):
    """The policy names the digest of the one script, so nothing else runs."""
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert text.lower().count("<script") == 1
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert _policy(text).endswith(f"img-src data:; script-src 'sha256-{digest}'")
    assert not re.search(r"fetch|XMLHttp|import|eval|innerHTML|storage|cookie|src\b", script)
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
    from sfumato.basics.structs import from_bytes, to_bytes
    from sfumato.questions.histogram import HistogramRelease

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
    # The pictures: their text, their series, and what is written on the hatched ground.
    inks = [f"chart-{name}" for name in style.COLOURS.values()]
    grounds = {"chart-paper", "chart-rule", "chart-fill", "chart-unknown", "chart-hatch"}
    pairs += [(ink, "chart-paper") for ink in inks if ink not in grounds]
    pairs += [("chart-muted", "chart-unknown")]
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
<pre id=o></pre>
<script>
const sizes = [[1280, 800], [768, 1024], [390, 844]];
let left = sizes.length;
for (const [width, height] of sizes) {
  const f = document.createElement('iframe');
  f.style = `width:${width}px;height:${height}px;border:0`;
  f.src = 'report.html';
  f.onload = () => {
    const d = f.contentDocument;
    const out = [...d.querySelectorAll('body *')].filter(x => !x.closest('.scroll,svg,.skip,.label')
      && (x.getBoundingClientRect().right > width + 0.5 || x.getBoundingClientRect().left < -0.5));
    for (const x of out) o.textContent += `${x.tagName} ${x.className} sticks out\\n`;
    const front = d.querySelector('.front');
    const bottom = front ? Math.ceil(front.getBoundingClientRect().bottom) : 0;
    const hints = [...d.querySelectorAll('.hint')].filter(x => x.offsetHeight).length;
    o.textContent += `at ${width}x${height}: wide ${d.documentElement.scrollWidth}`
      + ` outside ${out.length} bottom ${bottom} hints ${hints}\\n`;
  };
  document.body.append(f);
}
</script>"""


ZOOM = """<!doctype html><body style="margin:0">
<pre id=o></pre>
<script>
const f = document.createElement('iframe');
f.style = 'width:1280px;height:900px;border:0';
f.src = 'report.html';
f.onload = () => {
  const d = f.contentDocument, w = f.contentWindow, box = d.querySelector('.wide.zoomable');
  const say = name => {
    const moved = box.querySelector('.coast .moved').getAttribute('transform');
    const bar = box.querySelector('.scale-text text').textContent;
    const ticks = [...box.querySelectorAll('.map-x text')].map(x => x.textContent).join(' ');
    o.textContent += `${name}: ${moved.match(/scale\\(([^)]*)/)[1]} | ${bar} | ${ticks}\n`;
  };
  const key = key => box.dispatchEvent(new w.KeyboardEvent('keydown', { key, bubbles: true }));
  const wheel = deltaY => {
    const svg = box.querySelector('svg').getBoundingClientRect();
    const event = new w.WheelEvent('wheel', { deltaY, clientX: svg.left + svg.width / 2,
      clientY: svg.top + svg.height / 2, bubbles: true, cancelable: true });
    box.dispatchEvent(event);
    return event.defaultPrevented;
  };
  say('whole');
  o.textContent += `scrolls: ${!wheel(-1)}\n`;
  const [plus, minus, whole] = box.querySelectorAll('button');
  plus.click(); plus.click(); say('buttons');
  key('ArrowRight'); say('moved');
  key('-'); say('minus');
  box.focus();
  o.textContent += `zooms: ${wheel(-1)}\n`; say('wheel');
  whole.click(); say('again');
  const names = [plus, minus, whole].map(x => x.getAttribute('aria-label'));
  o.textContent += `names: ${names.join(', ')}\n`;
};
document.body.append(f);
</script>"""


def _browse(folder, *flags):
    """What headless Chromium shows and says of the probe in a folder."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += ["--disable-background-networking", "--allow-file-access-from-files"]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=8000", *flags]
    return subprocess.run(
        [*command, (folder / "probe.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=True,
    )


def _sizes(folder):
    (folder / "probe.html").write_text(PROBE, "utf-8")
    done = _browse(folder, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    found = re.findall(
        r"at (\d+)x(\d+): wide (\d+) outside (\d+) bottom (\d+) hints (\d+)", done.stdout
    )
    assert len(found) == 3
    assert re.findall(r"(.*) sticks out", done.stdout.partition("</pre>")[0]) == []
    return [tuple(map(int, each)) for each in found]


@pytest.mark.deep
@pytest.mark.parametrize("audience", page.AUDIENCES)
def test_the_front_page_fits_one_screen_and_nothing_sticks_out(
    releases, decisions, tmp_path, audience
):
    points = np.random.default_rng(1).random((2000, 2))
    model = sf.PrivateKMeans(2, epsilon=8, random_state=0).fit(points)
    items = [releases, decisions, model, _finding()]
    path = report(items, tmp_path / "report.html", audience=audience)
    path.write_text(path.read_text("utf-8").replace("<details>", "<details open>"), "utf-8")
    for width, height, wide, outside, bottom, _ in _sizes(tmp_path):
        assert wide <= width
        assert outside == 0
        assert 0 < bottom <= height


@pytest.mark.deep
def test_long_and_foreign_labels_stay_in_their_columns(tmp_path):
    labels = ["x" * 10_000, "y " * 5_000, "שלום עולם", "مرحبا بالعالم", "\u202eevil", "東京"]
    domain = Domain({"z" * 10_000: Categories(labels), "kind": Categories(labels[2:])})
    releases = [
        receipted(answered(Histogram(axes), domain=domain), account="a" * 300, source="b" * 300)
        for axes in ("kind", ["z" * 10_000], ["z" * 10_000, "kind"])
    ]
    report(releases, tmp_path / "report.html", title="c" * 300)
    for width, height, wide, outside, bottom, hints in _sizes(tmp_path):
        assert wide <= width
        assert outside == 0
        assert 0 < bottom <= height
        assert (hints > 0) == (width == 390)


@pytest.mark.deep
def test_a_map_is_enlarged_by_buttons_keys_and_wheel(tmp_path):
    """Under the page's own policy, which allows this one script."""
    domain = Domain(lon=Interval(-10, 30), lat=Interval(35, 60))
    release = receipted(answered(UniformPartitioner(["lon", "lat"], partitions=400), domain=domain))
    report(release, tmp_path / "report.html")
    (tmp_path / "probe.html").write_text(ZOOM, "utf-8")
    done = _browse(tmp_path, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    lines = done.stdout.partition("<pre")[2].partition("</pre>")[0].splitlines()
    said = dict(line.lstrip('> id="o').split(": ", 1) for line in lines if ": " in line)
    scale = {name: float(text.split(" | ")[0]) for name, text in said.items() if "|" in text}
    assert scale == pytest.approx(
        {"whole": 1, "buttons": 4, "moved": 4, "minus": 2, "wheel": 2 * 2**0.5, "again": 1}
    )
    assert said["whole"] == said["again"]
    assert said["buttons"].split(" | ")[1] == "100 km at 48° N"
    assert said["buttons"].split(" | ")[2] != said["moved"].split(" | ")[2]
    # The wheel scrolls the page until the map was chosen.
    assert (said["scrolls"], said["zooms"]) == ("true", "true")
    assert said["names"] == "Enlarge the map, Reduce the map, Show the whole map"


@pytest.mark.deep
def test_it_prints_on_a4(releases, tmp_path):
    report(releases, tmp_path / "probe.html")
    target = tmp_path / "page.pdf"
    _browse(tmp_path, f"--print-to-pdf={target}")
    sizes = set(re.findall(rb"/MediaBox \[([^\]]*)\]", target.read_bytes()))
    assert len(sizes) == 1
    left, bottom, right, top = (float(each) for each in sizes.pop().split())
    assert (round(right - left), round(top - bottom)) in {(595, 842), (596, 842), (596, 843)}


def test_labels_of_any_length_are_cut_and_foreign_ones_are_isolated():
    """The direction of a label must not turn around the text beside it."""
    label = "x" * 10_000
    domain = Domain({"kind": Categories([label, "שלום"])})
    shown = page.render([answered(Histogram("kind"), domain=domain)])
    assert "x" * 200 not in shown
    assert "<bdi>שלום</bdi>" in shown
    assert Outline(shown).open == []


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
    releases = releases[::4]
    board = report(releases, tmp_path / "board.html", audience="board").read_text("utf-8")
    assert board == page.render(releases, audience="board") != page.render(releases)
    with pytest.raises(UsageError, match='Write "technical" or "board"'):
        report(releases, tmp_path / "never.html", audience="press")
    assert not (tmp_path / "never.html").exists()
