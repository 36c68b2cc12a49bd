"""A disclosure is filled in from releases, and says what is missing. It never invents."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest
import yaml

import sfumato as sf
from reports.disclosure import visits
from sfumato.reports.disclosure.disclose import slug_of
from sfumato.risk.window import Window
from sfumato.testing import deterministic


def read(path: Path) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def test_an_entry_has_every_field_of_the_registry(releases, ledger, tmp_path):
    written = sf.disclose(releases, tmp_path / "visits.yaml", ledger=ledger)
    entry = read(written.path)
    visits.require_entry(entry)
    assert written.verified
    assert written.filled >= 0.8 * written.fields
    missing = [place for place, value in visits.every_leaf(entry) if "TODO: " in str(value)]
    assert missing == list(written.missing)
    assert set(missing) == {
        "deployment.product.data_curators",
        "deployment.product.intended_use",
        "deployment.product.data_product_region",
        "deployment.product.data_product_sector",
        "deployment.resources.registry_authors",
    }
    heading = written.path.read_text(encoding="utf-8").split("url_slug")[0]
    assert all(f"#   {place}\n" in heading for place in missing)


def test_with_facts_nothing_is_left_to_write(releases, ledger, tmp_path):
    written = sf.disclose(releases, tmp_path / "v.yaml", ledger=ledger, facts=visits.FACTS)
    assert not written.missing
    text = written.path.read_text(encoding="utf-8")
    assert "TODO" not in text
    product = read(written.path)["deployment"]["product"]
    assert product["data_curators"] == ["City hospital"]
    assert product["intended_use"] == "To plan wards"
    assert "(City hospital)" in read(written.path)["deployment"]["model"]["actors"]


def test_the_same_releases_give_the_same_bytes(releases, ledger, tmp_path):
    first, second = tmp_path / "1" / "v.yaml", tmp_path / "2" / "v.yaml"
    for path, given in ((first, releases), (second, [*reversed(releases), releases[0]])):
        path.parent.mkdir()
        sf.disclose(given, path, ledger=ledger, checklist=path.with_suffix(".html"))
    assert first.read_bytes() == second.read_bytes()
    assert (first.parent / "v.html").read_bytes() == (second.parent / "v.html").read_bytes()


def test_a_window_says_how_the_cost_was_chosen(releases, tmp_path):
    window = sf.window(
        sf.Histogram("age"),
        domain=visits.DOMAIN,
        unit=visits.source().unit,
        accuracy=sf.Within(200),
        risk=sf.Risk(advantage="0.5"),
    )
    assert isinstance(window, Window)
    path, page = tmp_path / "v.yaml", tmp_path / "v.html"
    sf.disclose([releases, window], path, checklist=page)
    reasons = read(path)["deployment"]["implementation"]["justification"]
    assert "The cost was chosen by a window: Decision: epsilon = " in reasons
    assert "who chose the budget" not in page.read_text(encoding="utf-8")


def test_a_disclosure_of_nothing_is_refused(tmp_path):
    with pytest.raises(sf.UsageError, match="a disclosure of nothing: there is no release"):
        sf.disclose([], tmp_path / "v.yaml")
    for wrong in (3, "releases/1.json", {"a": 1}, [None], np.zeros(3)):
        with pytest.raises(sf.UsageError, match="a disclosure of a value of type"):
            sf.disclose(wrong, tmp_path / "v.yaml")
    assert not list(tmp_path.iterdir())


def test_a_release_that_protects_nobody_is_refused(tmp_path):
    with deterministic(1), sf.Publisher(visits.source(), budget="1") as publisher:
        release = publisher.release(sf.Histogram("age"), epsilon="1")
    with pytest.raises(sf.UsageError, match="its noise came from a public seed"):
        sf.disclose(release, tmp_path / "v.yaml")
    private = msgspec.structs.replace(release.guarantee, private=True)
    bare = msgspec.structs.replace(release, guarantee=private, receipt=None)
    with pytest.raises(sf.UsageError, match="it has no receipt"):
        sf.disclose(bare, tmp_path / "v.yaml")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"data_curator": "x"}, "did you mean 'data_curators'"),
        ({"intended_use": " "}, "the text is empty"),
        ({"intended_use": 3}, "it is a whole number, and must be text in quotes"),
        ({"release_type": "Often"}, "release_type"),
        ({"name": "x" * 10_001}, "10,001 characters"),
        ({"notes": {"epsilon": "0.1"}}, "no note can be added there"),
        ([], "they are not a dict"),
    ],
)
def test_facts_that_do_not_fit_are_refused(releases, tmp_path, facts, said):
    with pytest.raises(sf.UsageError) as refusal:
        sf.disclose(releases, tmp_path / "v.yaml", facts=facts)
    assert said in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_notes_are_added_and_marked(releases, tmp_path):
    facts = {"notes": {"post_processing": "Counts below 90 were removed."}, "auditing": "None."}
    written = sf.disclose(releases, tmp_path / "v.yaml", facts=facts)
    accounting = read(written.path)["deployment"]["accounting"]
    said = accounting["post_processing"].split("\n")
    assert said[-1] == "Added by hand: Counts below 90 were removed."
    assert len(said) > 1
    assert accounting["auditing"] == "None."


def test_text_of_strangers_stays_text(tmp_path):
    """A file from a stranger may hold names that steer a terminal, a page or a parser of YAML."""
    source = sf.source(np.zeros((9, 1)), sf.Domain(x=sf.Interval(0, 4)), name="plain")
    asked = sf.Histogram("x", heading="<b>&amp; TODO \u05d0\u05d1")
    with sf.Publisher(source, budget="1") as publisher:
        release = publisher.release(asked, epsilon="1")
    name = "x: [\u202e]\n- !!python/object/apply:os.system ['true'] <script>"
    strange = msgspec.structs.replace(release.receipt, source=name, account="z\u202e" * 5_000)
    page = tmp_path / "c.html"
    facts = {"data_curators": ["<img src=x>\u202e"], "intended_use": "a\nb: c\n# d"}
    hostile = msgspec.structs.replace(release, receipt=strange)
    written = sf.disclose(hostile, tmp_path / "v.yaml", facts=facts, checklist=page)
    shown = page.read_text(encoding="utf-8")
    text = written.path.read_text(encoding="utf-8") + shown
    assert "\u202e" not in text
    assert not {"<script>", "<b>", "<img"} & set(re.findall(r"<\w+>?", shown))
    assert text.count("z") < 2_000
    entry = read(written.path)
    visits.require_entry(entry)
    assert entry["deployment"]["product"]["intended_use"] == "a\nb: c\n# d"


def test_two_hundred_answers_make_a_short_document(tmp_path):
    table = sf.source(np.zeros((9, 1)), sf.Domain(x=sf.Interval(0, 400)), name="many")
    with sf.Publisher(table, budget="1") as publisher:
        plan = [sf.Histogram("x", bins=2 + i % 40) for i in range(200)]
        releases = publisher.release(plan, epsilon="1")
    page = tmp_path / "c.html"
    written = sf.disclose(releases, tmp_path / "v.yaml", checklist=page)
    entry = read(written.path)
    visits.require_entry(entry)
    assert "200 answers" in entry["deployment"]["product"]["description"]
    assert "188 more answers" in entry["deployment"]["implementation"]["justification"]
    assert written.path.stat().st_size < 20_000
    assert page.stat().st_size < 40_000


def test_views_of_pages_as_wikimedia_publishes_them(tmp_path):
    """Daily views by page and country; a device on a day is the person; rho = 0.015."""
    rng = np.random.default_rng(15)
    pages, countries = [f"page {i}" for i in range(30)], ["A", "B", "C"]
    rows = 6_000
    views = {
        "device": rng.integers(0, 500, rows),
        "day": np.datetime64("2026-01-01", "D") + rng.integers(0, 2, rows),
        "page": rng.choice(pages, rows),
        "country": rng.choice(countries, rows),
    }
    domain = sf.Domain(
        day=sf.Interval("2026-01-01", "2026-01-03"),
        page=sf.Categories(pages),
        country=sf.Categories(countries),
    )
    source = sf.source(
        pa.table(views),
        domain,
        person=["device", "day"],
        rows_per_cell=1,
        cells_per_person=10,
        name="views",
    )
    with sf.Publisher(source, budget=sf.ZCDP("0.015")) as publisher:
        release = publisher.release(
            sf.Histogram(["day", "page", "country"], width={"day": 1}), rho="0.015"
        )
    facts = visits.FACTS | {
        "release_type": "Many releases",
        "data_source_type": "Dynamic",
        "notes": {"post_processing": "Noisy counts below 90 were removed."},
    }
    entry = read(sf.disclose(release, tmp_path / "views.yaml", facts=facts).path)
    visits.require_entry(entry)
    said = entry["deployment"]
    assert said["dp_flavor"]["name"] == "Zero-concentrated DP"
    assert said["privacy_loss"]["privacy_parameters"] == {"rho": 0.015}
    assert said["privacy_loss"]["privacy_unit"] == "Device-day-level"
    assert "at most 10 cells" in said["privacy_loss"]["privacy_unit_description"]
    # One device adds 1 to each of at most 10 cells: sigma^2 = 10 / (2 * 0.015).
    assert "Discrete Gaussian noise of sigma 18.2574" in said["implementation"]["mechanisms"]
    assert said["model"]["release_type"] == "Many releases"
    assert "below 90" in said["accounting"]["post_processing"]


def test_each_month_of_the_data_is_listed(tmp_path):
    rows = np.zeros((9, 1))
    question, releases = sf.Histogram("x"), []
    with sf.Publisher(visits.source(), budget="1") as other:
        ledger = other.ledger
        for month in ("2026-01", "2026-02"):
            table = sf.source(rows, sf.Domain(x=sf.Interval(0, 4)), name="doc", version=month)
            publisher = sf.Publisher(table, ledger=ledger, account="months", budget="2")
            releases.append(publisher.release(question, epsilon="1"))
        path = sf.disclose(releases, tmp_path / "v.yaml", ledger=ledger, account="months").path
    said = read(path)["deployment"]
    assert said["model"]["release_type"] == "Many releases"
    for month in ("2026-01", "2026-02"):
        assert f"epsilon = 1 for doc, version {month}" in said["model"]["release_type_description"]
    assert said["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.0}


@pytest.mark.parametrize(
    ("name", "slug"),
    [("a/Page_views 2026.yaml", "page-views-2026"), ("-.yaml", "entry"), ("x.yml", "x")],
)
def test_an_entry_is_named_by_its_file(name, slug):
    assert slug_of(Path(name)) == slug
