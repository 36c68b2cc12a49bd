"""What the command line prints, writes and returns for two tables is the same.

The tables differ in one person.
"""

from __future__ import annotations

from pathlib import Path

from support.artefacts import World, assert_same, both
from trust.tables import EVERYTHING, comma, laid, parquet

AXES = ("--axis", "x=0..16/1", "--axis", "y=0..16/1")
PERSON = ("--person", "who", "--rows-per-person", 2)
COST = ("--epsilon", 8, "--budget", "900,0.5")
PLAN = """
[source]
path = {path}
person = "who"
rows_per_person = 2
[domain]
x = {{ type = "interval", lower = 0, upper = 16, step = 1 }}
y = {{ type = "interval", lower = 0, upper = 16, step = 1 }}
kind = {{ type = "categories", labels = ["a", "b"] }}
[budget]
account = "plan"
epsilon = "100"
[release]
epsilon = "24"
[[questions]]
type = "histogram"
axes = ["x", "kind"]
bins = {{ x = 4 }}
[[questions]]
type = "quantiles"
axes = ["y"]
"""


def commands(here: World, table: Path) -> None:
    """Every command that releases, and every command that shows what was released.

    Those that release write all that they may write.
    """
    book = ("--ledger", here.ledger)
    here.command("init", table)
    here.command(
        "histogram",
        table,
        *AXES[:2],
        "--bins",
        4,
        *PERSON,
        *COST,
        *book,
        "--plot",
        here.out / "h.svg",
        "--out",
        here.out / "h",
    )
    here.command(
        "histogram", table, *AXES[:2], "--bins", 4, *PERSON, *COST, *book, "--json"
    )  # again, from the store
    here.command(
        "histogram", table, "--axis", "shop=*", *PERSON, *COST, "--delta", "0.01", *book, "--json"
    )
    here.command(
        "histogram",
        table,
        *AXES[2:],
        "--records",
        8,
        *PERSON,
        *COST,
        *book,
        "--out",
        here.out / "r",
    )
    here.command(
        "quantiles",
        table,
        *AXES,
        "--axis",
        "kind=a,b",
        "--by",
        "kind",
        *PERSON,
        *COST,
        *book,
        "--out",
        here.out / "q",
    )
    also = (
        "--plot",
        here.out / "p.svg",
        "--geojson",
        here.out / "p.geojson",
        "--out",
        here.out / "p",
    )
    here.command("partition", table, *AXES, *PERSON, *COST, *book, *also)
    here.command(
        "cluster", table, *AXES, "--clusters", 2, *PERSON, *COST, *book, "--out", here.out / "c"
    )
    here.command(
        "tables",
        table,
        *AXES[:2],
        "--axis",
        "kind=a,b",
        "--table",
        "x,kind",
        "--table",
        "kind",
        *PERSON,
        *COST,
        *book,
        "--out",
        here.out / "t",
    )
    here.command("persons", table, *AXES[:2], *PERSON, *COST, *book, "--out", here.out / "n")
    plan = here.out / "plan.toml"
    plan.write_text(PLAN.format(path=repr(str(table))), encoding="utf-8")
    here.command("preview", plan)
    here.command(
        "release", plan, *book, "--out", here.out / "plan", "--report", here.out / "plan.html"
    )
    here.command("release", plan, *book, "--json")
    saved = [path for name in ("h", "c") for path in sorted((here.out / name).glob("*.json"))]
    here.command("report", *saved, "--out", here.out / "again.html")
    for path in saved:
        here.command("verify", path, *book)
    page = ("--checklist", here.out / "checklist.html")
    here.command("disclose", *saved, *book, "--out", here.out / "entry.yaml", *page)
    for what in ("show", "log", "verify"):
        here.command("ledger", what, *book)
        here.command("ledger", what, *book, "--json")
    here.command("ledger", "export", *book, "--out", here.out / "export.json")


def test_every_command(tmp_path: Path) -> None:
    seen = assert_same(both(tmp_path / "w", laid(parquet, EVERYTHING), commands))
    codes = {name: seen[name] for name in seen if name.endswith("returned repr")}
    assert set(codes.values()) == {b"0"}, codes


def test_signed_releases(tmp_path: Path) -> None:
    """A signature covers the release, and so shows nothing that the release does not."""

    def run(here: World, table: Path) -> None:
        book = ("--ledger", here.ledger)
        here.command("ledger", "init", "default", "--epsilon", 900, "--delta", "0.5", *book)
        here.command("ledger", "key", *book)
        here.command(
            "histogram", table, *AXES[:2], "--bins", 4, *PERSON, *COST, *book, "--out", here.out
        )
        here.command("verify", *here.out.iterdir(), *book)

    seen = assert_same(both(tmp_path / "w", laid(parquet, EVERYTHING), run))
    assert {seen[name] for name in seen if name.endswith("returned repr")} == {b"0"}
    assert b'"signature"' in b"".join(seen.values())


def test_refusals(tmp_path: Path) -> None:
    """What is refused is refused in the same words, and costs the same."""

    def run(here: World, table: Path) -> None:
        book = ("--ledger", here.ledger)
        here.command("histogram", table, *AXES[:2], *PERSON, *COST, *book, "--epsilon", 1000)
        here.command("histogram", table, "--axis", "none=0..1", *PERSON, *COST, *book)
        here.command("histogram", table, "--axis", "kind=0..1", *PERSON, *COST, *book)
        here.command("histogram", table, "--axis", "x=a,b", *PERSON, *COST, *book)
        here.command("histogram", table, *AXES[:2], "--person", "x", *COST, *book)
        here.command("histogram", table, "--axis", "x=*", *PERSON, *COST, "--delta", "0.01", *book)
        here.command("cluster", table, *AXES, "--clusters", 2000, *PERSON, *COST, *book)
        here.command("ledger", "log", *book, "--json")

    for form in (parquet, comma):
        assert_same(both(tmp_path / "w", laid(form, EVERYTHING), run))


STREAM = (
    "--epsilon",
    1,
    "--budget",
    9,
    "--from",
    "2026-01-01",
    "--to",
    "2026-01-05",
    "--until",
    "2026-01-05",
    "--step",
    "day",
)
ROWS = [(f"p{i}", f"2026-01-0{1 + i % 5}", "ab"[i % 2], str(i % 4)) for i in range(20)]
OWN = [("p99", "2026-01-02", "b", "3")] * 9 + [
    ("p99", "2027-01-01", "a", "1"),
    ("", "2026-01-03", "a", "1"),
    ("p98", "2026-01-04", "zz", "1e300"),
]


def test_streams(tmp_path: Path) -> None:
    def lay(here: World, which: int) -> Path:
        path = here.data / "rows.csv"
        lines = [
            ",".join(row)
            for row in [("who", "day", "kind", "minutes"), *(OWN if which else []), *ROWS]
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def run(here: World, table: Path) -> None:
        book = ("--ledger", here.ledger, *STREAM)
        here.command(
            "stream",
            table,
            *book,
            "--key",
            "visits",
            "--account",
            "visits",
            *PERSON,
            "--save",
            here.out / "s.json",
            "--plot",
            here.out / "s.svg",
        )
        here.command(
            "stream", table, *book, "--key", "visits", "--account", "visits", *PERSON, "--history"
        )
        here.command(
            "stream",
            table,
            *book,
            "--key",
            "kinds",
            "--account",
            "kinds",
            "--by",
            "kind=a,b",
            *PERSON,
        )
        here.command(
            "stream",
            table,
            *book,
            "--key",
            "minutes",
            "--account",
            "minutes",
            "--value",
            "minutes=0..3",
            *PERSON,
        )
        here.command("report", here.out / "s.json", "--out", here.out / "s.html")
        here.command("ledger", "log", "--ledger", here.ledger, "--json")
        here.command("ledger", "export", "--ledger", here.ledger, "--out", here.out / "export.json")

    seen = assert_same(both(tmp_path / "w", lay, run))
    assert {seen[name] for name in seen if name.endswith("returned repr")} == {b"0"}
