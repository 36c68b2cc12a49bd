"""What others wrote neither steers a terminal nor stalls or breaks a run.

Others write labels, names of columns and saved files.

Work is bounded by sizes, never measured by the clock: what is looked at is how long the numbers are
that reach exact arithmetic.
"""

from __future__ import annotations

import copy
import io
import json
import string
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.answers.registry import release_type
from sfumato.basics.numbers import MOST_BITS, float_of_text, fraction, whole_of_text
from sfumato.basics.structs import to_bytes
from sfumato.cli import run
from sfumato.cli.output import plain_json
from sfumato.errors import SfumatoError, UsageError, printable, shown
from sfumato.local.client import Client, Report, mechanism_of, reports
from sfumato.local.collector import LONGEST_LINE, Collector, lines, write
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.publishing.plan_file import LONGEST_PLAN, PlanFile, read_plan
from sfumato.testing import deterministic

STEERING = "\x1b[2J\x9b31m\x7f\r\b\u202e\u2066\u200f\u061c\u2028\ufeff\U000e0041"
BAD = "\x1b\x9b\x7f\r\b\u202e\u2066\u200f\u061c\u2028\ufeff\U000e0041"
HUGE = 10**5000


def _bad(text: str) -> list[str]:
    return [c for c in text if c in BAD]


# --- the terminal ---------------------------------------------------------------------------------


def test_one_function_escapes_what_steers() -> None:
    assert not _bad(printable(STEERING))
    assert (
        printable("Zürich \u4e2d\u6587 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 100 %")
        == "Zürich \u4e2d\u6587 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 100 %"
    )
    assert printable("\ud800") == "\\ud800"
    assert not _bad(plain_json(json.dumps(STEERING, ensure_ascii=False)))
    assert json.loads(plain_json(json.dumps(STEERING, ensure_ascii=False))) == STEERING


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan whose person, axes, labels and account try to steer the terminal, and its table."""
    monkeypatch.chdir(tmp_path)
    name, label = f"axis{STEERING}\nfake", f"label{STEERING}\nfake"
    pytest.importorskip("pyarrow.parquet").write_table(
        pytest.importorskip("pyarrow").table(
            {name: [label, "b"], "x": [0.2, 0.9], f"who{STEERING}": [1, 2]}
        ),
        "t.parquet",
    )
    quoted = {
        key: json.dumps(text)
        for key, text in (
            ("name", name),
            ("label", label),
            ("who", f"who{STEERING}"),
            ("acct", f"a{STEERING}"),
        )
    }
    quoted = {
        key: text.replace("\\ud83c", "") if key != "never" else text for key, text in quoted.items()
    }
    tag = {key: text.replace("\\udb40\\udc41", "\\U000E0041") for key, text in quoted.items()}
    Path("plan.toml").write_text(
        f"""
[source]
path = "t.parquet"
person = {tag["who"]}
name = "doc"
[domain]
{tag["name"]} = {{ type = "categories", labels = [{tag["label"]}, "b"] }}
x = {{ type = "interval", lower = 0, upper = 1 }}
[budget]
account = {tag["acct"]}
epsilon = 3
[release]
epsilon = "1"
[[questions]]
type = "histogram"
axes = [{tag["name"]}]
[[questions]]
type = "quantiles"
axes = ["x"]
by = {tag["name"]}
[[questions]]
type = "binary"
axes = ["x"]
depth = 2
""",
        encoding="utf-8",
    )
    return tmp_path


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.usefixtures("hostile")
def test_no_command_passes_on_what_steers_a_terminal(
    as_json: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    ask = ["--json"] if as_json else []
    for words, code in (
        (["preview", "plan.toml"], 0),
        (["release", "plan.toml", "--ledger", "l.db"], 0),
        (["ledger", "show", "--ledger", "l.db"], 0),
        (["ledger", "log", "--ledger", "l.db"], 0),
        (["release", "plan.toml", "--ledger", "l.db", "--fresh"], 0),
        (["ledger", "init", f"a{STEERING}", "--epsilon", "7", "--ledger", "l.db"], None),
        (["ledger", "log", "--account", f"b{STEERING}", "--ledger", "l.db"], None),
        (
            [
                "histogram",
                "t.parquet",
                "--axis",
                f"x{STEERING}=0..1",
                "--epsilon",
                "1",
                "--budget",
                "3",
                "--ledger",
                "m.db",
            ],
            None,
        ),
        (["preview", f"no{STEERING}.toml"], 4),
        ([f"no{STEERING}"], 2),
        (["preview", f"--no{STEERING}"], 2),
    ):
        found = run([*words, *ask])
        captured = capfd.readouterr()
        assert not _bad(captured.out.replace("\r\n", "\n"))
        assert not _bad(captured.err)
        assert found == code if code is not None else found in (2, 3, 4, 5)
        assert not any(
            line.startswith("fake") for line in (captured.out + captured.err).splitlines()
        )


def test_what_python_prints_steers_no_terminal() -> None:
    name = f"axis{STEERING}\nfake"
    domain = sf.Domain({name: sf.Categories([f"label{STEERING}"]), "x": sf.Interval(0, 1)})
    unit = sf.Unit(2, person=f"who{STEERING}")
    preview = sf.preview(sf.Histogram(name), domain=domain, unit=unit, epsilon="1")
    counter = sf.preview(sf.Counter(horizon=3, by=name), domain=domain, unit=unit, epsilon="1")
    source = sf.source(
        pytest.importorskip("pyarrow").table({name: ["b"], "x": [0.5]}), domain, name="doc"
    )
    release = sf.Publisher(source, budget="3").release(sf.Histogram(name), epsilon="1")
    with pytest.raises(UsageError) as refused:
        domain.select(f"no{STEERING}")
    said = [
        str(preview),
        str(counter),
        repr(domain),
        repr(release),
        str(release.guarantee),
        release.title,
        str(refused.value),
        str(unit),
    ]
    for text in said:
        assert not _bad(text)
        assert not any(line.startswith("fake") for line in text.splitlines())


def _named(text: str) -> str:
    return f"{text}\0{STEERING}\u2029"


def _asked() -> dict[str, tuple[Any, dict[str, str]]]:
    """A question of every kind, about axes whose names steer, with its cost."""
    wage, year, kind, shop = map(_named, ("wage", "year", "kind", "shop"))
    half = {"epsilon": "0.5"}
    return {
        "bars": (sf.Histogram(year), half),
        "table": (sf.Histogram([kind, year], bins=4), half),
        "ranges": (sf.Histogram(wage, bins=64, workload="ranges"), half),
        "keys": (sf.Histogram(shop), {"epsilon": "2", "delta": "1e-6"}),
        "tables": (sf.Tables([[kind, year], [kind, wage]], bins=[20, 4]), half),
        "mean": (sf.Mean(wage, by=kind), half),
        "means": (sf.Mean([wage, year]), half),
        "sum": (sf.Sum(wage, clip="auto"), half),
        "quantiles": (sf.Quantiles([wage, year], by=kind), half),
        "partition": (sf.AutoPartitioner([wage, year]), half),
        "clusters": (sf.KMeans(3, [wage, year]), half),
        "persons": (sf.Persons(most_rows=10), half),
    }


@pytest.fixture(scope="module")
def steering() -> tuple[sf.Source, dict[str, Any]]:
    """A source whose columns and labels all steer, and a release of every kind from it."""
    pa = pytest.importorskip("pyarrow")
    at = np.arange(300)
    labels = [_named("a"), _named("b")]
    domain = sf.Domain(
        {
            _named("wage"): sf.Interval(0, 100_000),
            _named("year"): sf.Interval(1990, 2010, step=1),
            _named("kind"): sf.Categories(labels, other=_named("else")),
            _named("shop"): sf.Keys(),
        }
    )
    table = {
        _named("wage"): at * 7919 % 100_003,
        _named("year"): 1990 + at * 13 % 20,
        _named("kind"): [labels[place % 2] for place in at],
        _named("shop"): [_named(f"shop {place % 3}") for place in at],
        _named("id"): at // 3,
    }
    src = sf.source(pa.table(table), domain, person=_named("id"), rows_per_person=4, name="doc")
    with deterministic(1), sf.Publisher(src, budget=sf.ApproxDP(100, "0.5")) as publisher:
        made: dict[str, Any] = {
            name: publisher.release(question, **cost) for name, (question, cost) in _asked().items()
        }
        with publisher.open(sf.Counter(9, by=_named("kind")), epsilon="1", key="k") as stream:
            stream.push(labels, event="first", persons=[1, 2])
            made["counter"] = stream.history()
    return src, made


def _steers(text: str) -> set[str]:
    return {c for c in text if c != "\n" and (c in BAD or c in "\0\u2029")}


def test_a_source_and_a_preview_steer_no_screen(
    steering: tuple[sf.Source, dict[str, Any]],
) -> None:
    src, _ = steering
    said = {"source": src, "domain": src.domain, "unit": src.unit}
    said |= {
        name: sf.preview(question, domain=src.domain, unit=src.unit, **cost)
        for name, (question, cost) in _asked().items()
    }
    with sf.Publisher(src, budget="1") as publisher:
        said["publisher"] = publisher
        said["check"] = publisher.check(sf.Histogram(_named("kind")))
        for name, value in said.items():
            html = value._repr_html_() if hasattr(value, "_repr_html_") else ""
            assert not _steers(repr(value) + str(value) + html), name


@pytest.mark.parametrize("name", [*_asked(), "counter"])
def test_no_release_steers_a_screen(
    name: str, steering: tuple[sf.Source, dict[str, Any]], tmp_path: Path
) -> None:
    """Neither in Python nor in a notebook, nor in a picture."""
    release = steering[1][name]
    said = {
        "repr": repr(release),
        "notebook": release._repr_html_(),
        "words": f"{release.title} {release.guarantee} {release.receipt} {release.receipt!r}",
    }
    drawn = release.plot()
    figure = (drawn if hasattr(drawn, "figure") else drawn.flat[0]).figure
    figure.savefig(tmp_path / "plot.svg")
    said["picture"] = (tmp_path / "plot.svg").read_text("utf-8")
    for where, text in said.items():
        assert not _steers(text), where


@pytest.mark.parametrize(
    ("audience", "stride"),
    [("technical", 1), ("board", 3), pytest.param("board", 1, marks=pytest.mark.deep)],
)
def test_no_release_steers_a_page(
    audience: str, stride: int, steering: tuple[sf.Source, dict[str, Any]], tmp_path: Path
) -> None:
    releases = [*steering[1].values()][::stride]
    path = sf.report(releases, tmp_path / "r.html", _named("title"), audience=audience)
    text = path.read_text("utf-8")
    assert text.count('<section class="answer"') == len(releases)
    assert not _steers(text)


# --- numbers --------------------------------------------------------------------------------------

NO_NUMBERS = [
    "0_5",
    "1_000",
    "\u0660.\u0665",
    "\u0661",
    "\uff11",
    "\u00b2",
    "1e1_0",
    "1e9999999",
    "9" * 401,
    "1/" + "7" * 400,
    "0x10",
    "1e",
    ".",
    "1/-2",
    "--1",
    "1 2",
]


@pytest.mark.parametrize("text", NO_NUMBERS, ids=range(len(NO_NUMBERS)))
def test_text_that_is_no_number(text: str) -> None:
    for read in (
        lambda: fraction(text, "epsilon"),
        lambda: sf.PureDP(text),
        lambda: sf.Histogram("x", width=text),
    ):
        with pytest.raises(UsageError) as refused:
            read()
        assert len(str(refused.value)) < 400
    assert whole_of_text(text) is None
    assert float_of_text(text) is None


LONG = [
    HUGE,
    -HUGE,
    Fraction(1, HUGE),
    Fraction(HUGE),
    Decimal("1e9999999"),
    Decimal("-1e9999999"),
    Decimal("1e-9999999"),
    float("inf"),
    float("nan"),
]


@pytest.mark.parametrize("number", LONG, ids=range(len(LONG)))
def test_numbers_too_long_to_work_with_never_reach_exact_arithmetic(number: Any) -> None:
    """Decimal("1e9999999") has one digit, and as a Fraction ten million.

    The exponent is looked at first.
    """
    for name in ("epsilon", "rho", "delta"):
        with pytest.raises(UsageError):
            sf.preview(
                sf.Histogram("x"),
                domain=sf.Domain(x=sf.Interval(0, 1)),
                unit=sf.Unit(),
                **({"epsilon": 1} if name == "delta" else {}),
                **{name: number},
            )
    with pytest.raises(UsageError):
        fraction(number, "x")


@given(
    st.one_of(
        st.text(max_size=30),
        st.text(string.digits + "._eE+-/ \u0661\u00b2", max_size=12),
        st.integers(),
        st.floats(),
        st.fractions(),
        st.decimals(),
    )
)
def test_reading_a_number_gives_a_short_one_or_a_refusal(given_: object) -> None:
    try:
        exact = fraction(given_, "x")  # type: ignore[arg-type]
    except UsageError:
        return
    assert max(exact.numerator.bit_length(), exact.denominator.bit_length()) <= MOST_BITS


@pytest.mark.parametrize("many", [HUGE, -HUGE], ids=["plus", "minus"])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: sf.Histogram("x", bins=n).needs(sf.Domain(x=sf.Interval(0, 1))).lattice,
        lambda n: sf.Histogram("x", bins=[0, 0.5, n]).needs(sf.Domain(x=sf.Interval(0, 1))).lattice,
        lambda n: (
            sf.Histogram("x", bins={"x": [0, 0.5, n]}).needs(sf.Domain(x=sf.Interval(0, 1))).lattice
        ),
        lambda n: sf.Histogram("x", records=n),
        lambda n: sf.Histogram("x", selection=n),
        lambda n: sf.Unit(rows_per_person=n),
        lambda n: sf.UniformPartitioner(partitions=n),
        lambda n: sf.BinaryPartitioner(depth=n),
        lambda n: sf.MultiQuantilePartitioner(fanout=n),
        lambda n: sf.PrivTreePartitioner(fanout=n),
        lambda n: sf.KMeans(n_clusters=n),
        lambda n: sf.Quantiles("x", method=n),
        lambda n: sf.Interval(0, n) if n > 0 else sf.Interval(n, 0),
        lambda n: sf.Categories([n]),
        lambda n: sf.Counter(horizon=n),
        lambda n: sf.BPM(epsilon=2, L=1, dimension=n),
        lambda n: sf.PrivateKMeans(n_clusters=n, epsilon=2),
        lambda n: sf.Plan([sf.Histogram("x")], shares=[n]),
    ],
)
def test_an_integer_of_5000_digits_ends_in_one_sentence(
    make: Callable[[int], object], many: int
) -> None:
    with pytest.raises(UsageError) as refused:
        make(many)
    assert len(str(refused.value)) < 500


def test_noise_that_no_epsilon_asks_for_is_refused() -> None:
    for scale in (Fraction(1, int("7" * 399)), Fraction(0), Fraction(-1), Fraction(2**49)):
        with pytest.raises(UsageError):
            DiscreteLaplace(scale)
        with pytest.raises(UsageError):
            DiscreteGaussian(scale**2 * (1 if scale > 0 else -1))
    assert DiscreteLaplace(1 / Fraction(10**9)).half_width(0.05) == 0


def test_what_is_shown_of_a_parameter_is_short() -> None:
    for value in (HUGE, "x" * 10**6, [HUGE], ["y" * 10**6], Fraction(1, HUGE)):
        assert len(shown(value)) < 250


# --- plans ----------------------------------------------------------------------------------------

PLAN = (Path(__file__).parent.parent / "examples" / "flights.toml").read_text("utf-8")
PLANS = {
    "an integer of 5,000 digits": PLAN.replace("upper = 24", f"upper = {'9' * 5000}"),
    "an integer of 4,000 digits": PLAN.replace("upper = 24", f"upper = {'9' * 4000}"),
    "a hexadecimal one": PLAN.replace("upper = 24", f"upper = 0x{'f' * 20_000}"),
    "nested lists": f"{PLAN}\nx = {'[' * 100_000}",
    "nested tables": f"{PLAN}\nx = {'{a=[' * 5_000}1{']}' * 5_000}",
    "a dotted name": f"{PLAN}\n{'a.' * 100_000}b = 1\n",
    "a dotted name in quotes": f"{PLAN}\n{chr(34)}a{chr(34)}{'. a' * 100_000} = 1\n",
    "a dotted heading": f"{PLAN}\n[{'a.' * 100_000}b]\n",
    "too long": f"{PLAN}\n#{' ' * LONGEST_PLAN}",
    "another script": PLAN.replace('epsilon = "', 'epsilon = "\u0660'),
    "a misspelt field of an axis": PLAN.replace("step = 1", "stepp = 1"),
    "no UTF-8": "\udcff",
    "nothing": "",
}


@pytest.mark.parametrize("text", PLANS.values(), ids=PLANS)
def test_a_plan_that_cannot_be_read_is_refused_in_one_sentence(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert text != PLAN
    assert run(["preview", str(plan)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert len(said.splitlines()) == 1
    assert len(said) < 800


def test_a_label_with_dots_is_no_dotted_name(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace('"9E"', '"' + "www.a.b " * 8 + '"'), encoding="utf-8")
    read_plan(plan)


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=6),
        st.sampled_from([2**62, 10**30, "1/777", "1e999", -1]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value[:4])
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, part in inner for place in _places(part, (*path, key)))]


def _with(value: Any, path: tuple[Any, ...], junk: Any, drop: bool) -> Any:
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    if drop:
        del holder[path[-1]]
    else:
        holder[path[-1]] = junk
    return changed


def _hurt_plan(data: st.DataObject, folder: Path) -> None:
    """Read a plan that was cut, or into which something was written, and preview it."""
    at = data.draw(st.integers(0, len(PLAN)))
    junk = data.draw(
        st.one_of(
            st.binary(max_size=12),
            st.text(max_size=12).map(lambda text: text.encode("utf-8", "replace")),
        )
    )
    cut = data.draw(st.integers(0, 40))
    (folder / "plan.toml").write_bytes(PLAN.encode()[:at] + junk + PLAN.encode()[at + cut :])
    try:
        spec = read_plan(folder / "plan.toml")
        cost = {name: getattr(spec.release, name) for name in ("epsilon", "delta", "rho")}
        sf.preview(spec.plan(), domain=sf.Domain(spec.domain), unit=sf.Unit(), **cost)
    except SfumatoError as refused:
        assert not _bad(str(refused))  # noqa: PT017


def _releases() -> list[dict[str, Any]]:
    domain = sf.Domain(x=sf.Interval(0, 1), kind=sf.Categories(["a", "b"]))
    table = pytest.importorskip("pyarrow").table({"x": [0.1, 0.7, 0.8], "kind": ["a", "b", "b"]})
    with deterministic(1):
        publisher = sf.Publisher(sf.source(table, domain, name="doc"), budget="100")
        asked = [
            sf.Histogram(["x", "kind"], bins=3),
            sf.Quantiles("x"),
            sf.UniformPartitioner("x", partitions=4),
            sf.BinaryPartitioner("x", depth=2),
            sf.KMeans(2, "x"),
        ]
        made = [publisher.release(question, epsilon="1") for question in asked]
        normal = sf.Publisher(sf.source(table, domain, name="doc"), budget=sf.ZCDP("1"))
        made.append(normal.release(sf.Histogram("x", bins=2), rho="0.5"))
        with publisher.open(sf.Counter(horizon=4), epsilon="1", key="k") as stream:
            stream.push(3)
            made.append(stream.history())
    return [json.loads(to_bytes(one)) for one in made]


def _hurt_release(data: st.DataObject, folder: Path, saved: list[dict[str, Any]]) -> None:
    """Load a release of which one part was replaced or dropped, and look at all that it says."""
    whole = data.draw(st.sampled_from(saved))
    path = data.draw(st.sampled_from(_places(whole)[1:]))
    hurt = _with(whole, path, data.draw(JUNK), data.draw(st.booleans()))
    (folder / "r.json").write_bytes(msgspec.json.encode(hurt))
    try:
        release = sf.load(folder / "r.json")
    except SfumatoError as refused:
        assert not _bad(str(refused))  # noqa: PT017
        return
    assert not _bad(repr(release) + release.guarantee.sentence())
    for look in (lambda: release.values, release.interval, release.to_frame):
        try:
            look()
        except SfumatoError as refused:
            assert not _bad(str(refused))  # noqa: PT017


def _hurt_lines(data: st.DataObject, folder: Path) -> None:
    """Collect reports of which some are none."""
    made = sf.BPM(4, "1.8", 1)
    with deterministic(1):
        good = [msgspec.json.encode(one) for one in reports(made, np.full((3, 1), 0.5))]
    junk = data.draw(
        st.lists(
            st.one_of(
                st.binary(max_size=30), JUNK.map(msgspec.json.encode), st.sampled_from(HOSTILE)
            ),
            max_size=5,
        )
    )
    (folder / "r.jsonl").write_bytes(b"\n".join([*junk, *good]))
    for collector in (Collector(made, private=False), Collector()):
        collector.read(folder / "r.jsonl")
        assert len(collector) <= 3 + len(junk)
    assert collector.refused >= 0


def _line(**fields: object) -> bytes:
    return msgspec.json.encode(
        {"to": "bpm,epsilon=4,L=9/5,dimension=1", "id": "a", "cells": [1]} | fields
    )


HOSTILE = [
    _line(to="bpm,epsilon=1e300,L=auto,dimension=99999"),
    _line(to=f"bpm,epsilon={'9' * 5000},L=1,dimension=1"),
    _line(to=f"bpm,epsilon=4,L=1/{'7' * 399},dimension=1"),
    _line(to="bpm,epsilon=1e-300,L=1,dimension=1"),
    _line(to="laplace,epsilon=1e-9,dimension=\u0661"),
    _line(id="x" * 1000),
    _line(extra=1),
    b'{"to":"bpm,epsilon=4,L=9/5,dimension=1","id":"b","cells":[' + b"9" * 5000 + b"]}",
    b'{"to":' + b"[" * 50_000,
]


@pytest.fixture(scope="module")
def saved() -> list[dict[str, Any]]:
    return _releases()


FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(data=st.data())
def test_only_refusals_come_out_of_plans(data: st.DataObject, tmp_path: Path) -> None:
    _hurt_plan(data, tmp_path)


@FUZZ
@given(data=st.data())
def test_only_refusals_come_out_of_saved_releases(
    data: st.DataObject, tmp_path: Path, saved: list[dict[str, Any]]
) -> None:
    _hurt_release(data, tmp_path, saved)


@FUZZ
@given(data=st.data())
def test_only_refusals_come_out_of_local_reports(data: st.DataObject, tmp_path: Path) -> None:
    _hurt_lines(data, tmp_path)


@pytest.mark.deep
def test_only_refusals_come_out_of_any_parser(
    tmp_path: Path, saved: list[dict[str, Any]], evidence: Callable[[str, object], None]
) -> None:
    """The same for thousands of files of each kind."""
    tried = {"plans": 0, "releases": 0, "reports": 0}

    @settings(max_examples=5_000, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(data=st.data())
    def hurt(data: st.DataObject) -> None:
        _hurt_plan(data, tmp_path)
        tried["plans"] += 1
        _hurt_release(data, tmp_path, saved)
        tried["releases"] += 1
        _hurt_lines(data, tmp_path)
        tried["reports"] += 1

    hurt()
    evidence("parsers", tried)


# --- saved releases and reports -------------------------------------------------------------------


def test_every_structure_of_a_file_refuses_unknown_fields() -> None:
    """What a file says and no version reads would be lost without a word.

    It may be a misspelt limit, or a claim.
    """
    seen: set[type] = set()

    def walk(kind: Any) -> None:
        if isinstance(kind, msgspec.inspect.StructType):
            if kind.cls in seen:
                return
            seen.add(kind.cls)
            for field in kind.fields:
                walk(field.type)
        for name in ("types", "item_types"):
            for part in getattr(kind, name, ()):
                walk(part)
        for name in ("item_type", "key_type", "value_type"):
            if hasattr(kind, name):
                walk(getattr(kind, name))

    for kind in (release_type(), PlanFile, Report):
        walk(msgspec.inspect.type_info(kind))
    assert len(seen) > 40
    assert not [kind.__name__ for kind in seen if not kind.__struct_config__.forbid_unknown_fields]


def test_an_unknown_field_is_refused(tmp_path: Path, saved: list[dict[str, Any]]) -> None:
    for whole in saved:
        for hurt in (whole | {"note": 1}, whole | {"guarantee": whole["guarantee"] | {"note": 1}}):
            (tmp_path / "r.json").write_bytes(msgspec.json.encode(hurt))
            with pytest.raises(sf.DataError, match="does not hold a release"):
                sf.load(tmp_path / "r.json")
        (tmp_path / "r.json").write_bytes(
            msgspec.json.encode(whole | {"table": {"x": [1]}})
        )  # as --json prints it
        assert json.loads(to_bytes(sf.load(tmp_path / "r.json"))) == whole


def test_a_saved_scale_of_one_in_a_huge_number_is_refused(
    tmp_path: Path, saved: list[dict[str, Any]]
) -> None:
    for scale in ("1/" + "7" * 399, "1/" + "7" * 5000, "1e-999", "1e9999999"):
        (tmp_path / "r.json").write_bytes(
            msgspec.json.encode(saved[0] | {"law": saved[0]["law"] | {"scale": scale}})
        )
        with pytest.raises(sf.DataError):
            sf.load(tmp_path / "r.json")


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_line_is_counted_and_left_out(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(line + b"\n")
    for collector in (Collector(sf.BPM(4, "1.8", 1)), Collector()):
        collector.read(tmp_path / "r.jsonl")
        assert (len(collector), collector.refused) == (0, 1)


def test_a_line_without_an_end_is_read_in_pieces() -> None:
    file = io.BytesIO(b"x" * (3 * LONGEST_LINE) + b"\nnext\n")
    found = list(lines(file))
    assert [len(line) for line in found] == [LONGEST_LINE, 5]
    assert found[1] == b"next\n"


# --- noise that repeats ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made", [sf.BPM(4, "1.8", 1), sf.MultivariateLaplace(4, 1)], ids=["bpm", "laplace"]
)
def test_local_reports_of_a_public_seed_say_that_they_are_not_private(
    made: Any, tmp_path: Path
) -> None:
    points = np.full((50, 1), 0.5)
    with deterministic(3):
        assert not made.guarantee.private
        drawn = reports(made, points)
        one = Client(made, [(0, 1)], tmp_path / "mine.json").report([0.5])
        fitted = sf.PrivateKMeans(1, epsilon=8, random_state=0).fit(points)
    assert made.guarantee.private
    assert all(report.to.endswith("not private") for report in [*drawn, one])
    assert b"not private" in (tmp_path / "mine.json").read_bytes()
    assert not fitted.guarantee_.private
    assert "NOT PRIVATE" in repr(fitted)
    with pytest.raises(UsageError):  # the memory of a test is no private report
        Client(made, [(0, 1)], tmp_path / "mine.json").report([0.5])
    assert mechanism_of(drawn[0].to) == made
    for name in ("r.jsonl", "r.parquet"):
        write(drawn, tmp_path / name)
        real, test, any_ = Collector(made), Collector(made, private=False), Collector()
        for collector in (real, test, any_):
            collector.read(tmp_path / name)
        assert (len(real), real.refused, real.guarantee.private) == (0, 50, True)
        assert (len(test), test.guarantee.private) == (50, False)
        assert (len(any_), any_.guarantee.private) == (50, False)
        assert any_.guarantee.sentence().startswith("NOT PRIVATE")
    assert sf.PrivateKMeans(1, epsilon=8, random_state=0).fit(points).guarantee_.private


def test_the_command_says_that_reports_are_not_private(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = sf.MultivariateLaplace(40, 1)
    with deterministic(3):
        write(reports(made, np.repeat([0.2, 0.8], 40)[:, None]), tmp_path / "r.jsonl")
    words = [
        "local",
        "collect",
        str(tmp_path / "r.jsonl"),
        "--clusters",
        "2",
        "--axis",
        "age=0..120",
    ]
    assert run([*words, "--epsilon", "40", "--mechanism", "laplace"]) == 2
    assert "were left out" in capsys.readouterr().err
    assert run([*words, "--any-mechanism", "--json"]) == 0
    said = capsys.readouterr()
    assert "NOT PRIVATE" in said.err
    assert json.loads(said.out)["private"] is False


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--axis", "age=0..120"],
        ["--epsilon", "40"],
        ["--any-mechanism", "--epsilon", "4", "--axis", "a=0..1"],
    ],
    ids=range(4),
)
def test_a_collection_names_its_mechanism(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(reports(sf.MultivariateLaplace(40, 1), np.full((9, 1), 0.5)), tmp_path / "r.jsonl")
    assert run(["local", "collect", str(tmp_path / "r.jsonl"), "--clusters", "1", *words]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("number", ["0_5", "1_0", "\u0665", "9" * 500], ids=range(4))
def test_options_read_ascii_digits_only(
    number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("age\n1\n2\n", encoding="utf-8")
    ask = [
        "histogram",
        str(tmp_path / "t.csv"),
        "--epsilon",
        "1",
        "--budget",
        "3",
        "--ledger",
        str(tmp_path / "l.db"),
    ]
    for words in (
        ["--axis", f"age=0..{number}"],
        ["--axis", f"age=0..10/{number}"],
        ["--axis", "age=0..100", "--bins", number],
        ["--axis", "age=0..100", "--rows-per-person", number],
        ["--axis", "age=0..100", "--records", number],
    ):
        assert run([*ask, *words]) == 2
    assert (
        run(
            [
                "local",
                "perturb",
                "--axis",
                "age=0..100",
                "--value",
                f"age={number}",
                "--epsilon",
                "4",
            ]
        )
        == 2
    )
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "l.db").exists()
