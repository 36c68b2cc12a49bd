"""Red team: wrong input ends in an error of three parts, before anything is spent."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.data import count
from sfumato.ledger import open_ledger

PLAN = """
[source]
path = "d.csv"
[domain]
x = { type = "interval", lower = 0, upper = 10 }
[budget]
account = "t"
epsilon = "3"
[release]
epsilon = "1"
[[questions]]
type = "histogram"
axes = "x"
bins = 4
"""

WRONG = {
    "unknown field": ('path = "d.csv"', 'path = "d.csv"\npersn = "p"', 2),
    "no questions": ('[[questions]]\ntype = "histogram"\naxes = "x"\nbins = 4', "", 2),
    "date and number": ("lower = 0", "lower = 2013-01-01", 2),
    "time of day": ("lower = 0", "lower = 06:00:00", 2),
    "nan bound": ("lower = 0", "lower = nan", 2),
    "infinite bound": ("lower = 0", "lower = -inf", 2),
    "boolean bound": ("lower = 0", "lower = true", 2),
    "nan edge": ("bins = 4", "bins = [0, nan, 10]", 2),
    "huge bins": ("bins = 4", "bins = 100000000000000000000000", 2),
    "half a bin": ("bins = 4", "bins = 4.5", 2),
    "unknown question": ('"histogram"', '"histogramm"', 2),
    "no axes": ('axes = "x"', "axes = []", 2),
    "unknown axis": ('axes = "x"', 'axes = "z"', 2),
    "shares": ('[release]\nepsilon = "1"', '[release]\nepsilon = "1"\nshares = [1, 2]', 2),
    "no share": ('[release]\nepsilon = "1"', '[release]\nepsilon = "1"\nshares = [0]', 2),
    "epsilon and rho": ('[release]\nepsilon = "1"', '[release]\nepsilon = "1"\nrho = 1', 2),
    "no cost": ('[release]\nepsilon = "1"', "[release]", 2),
    "no rows": ('path = "d.csv"', 'path = "d.csv"\nrows_per_person = 0', 2),
    "empty person": ('path = "d.csv"', 'path = "d.csv"\nperson = ""', 2),
    "no such person": ('path = "d.csv"', 'path = "d.csv"\nperson = "q"', 4),
    "no such file": ('"d.csv"', '"e.csv"', 4),
    "too much": ('[release]\nepsilon = "1"', '[release]\nepsilon = "4"', 3),
    "empty key": ('[release]\nepsilon = "1"', '[release]\nepsilon = "1"\nkey = ""', 2),
    "long account": ('"t"', '"' + "t" * 5000 + '"', 2),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_plans(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, code = WRONG[case]
    assert old in PLAN
    (tmp_path / "d.csv").write_text("x\n1\n2\n")
    (tmp_path / "p.toml").write_text(PLAN.replace(old, new))
    assert run(["release", str(tmp_path / "p.toml"), "--ledger", str(tmp_path / "b.db")]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    # Where it made a ledger before it was refused, it says that first.
    error = shown.err.removeprefix(f"The ledger {tmp_path / 'b.db'} is new: ")
    assert error.startswith(("Error: ", "it knows of nothing that was spent before.\nError: "))
    assert "Traceback" not in shown.err
    if (tmp_path / "b.db").exists():
        with open_ledger(tmp_path / "b.db") as ledger:
            assert not any(any(account.spent) for account in ledger.accounts())


def test_forms_of_csv_that_are_right(tmp_path: Path) -> None:
    plain = b"x,k\n1,a\n2,b\n"
    forms = {
        "a.csv": plain,
        "bom.csv": b"\xef\xbb\xbf" + plain,
        "crlf.csv": plain.replace(b"\n", b"\r\n"),
        "gz.csv.gz": gzip.compress(plain),
    }
    forms |= {
        "quoted.csv": b'x,k\n"1","a\nb"\n2,"a"\n',
        "latin.csv": "x,k\n1,é\n2,a\n".encode("latin1"),
    }
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
        src = sf.source(tmp_path / name, {"x": sf.Interval(0, 4)})
        assert count(src, [sf.Histogram("x", bins=4).needs(src.domain).lattice])[
            0
        ].counts.tolist() == [0, 1, 1, 0], name


def test_forms_of_files_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "head.csv").write_bytes("é,x\n1,2\n".encode("latin1"))
    (tmp_path / "wide.csv").write_bytes("x,k\n1,a\n".encode("utf-16"))
    (tmp_path / "semicolon.csv").write_text("x;k\n1;a\n")
    (tmp_path / "plain.csv.gz").write_text("x,k\n1,a\n")
    pq.write_table(pa.table({"x": [{"a": 1.0}]}), tmp_path / "nested.parquet")
    pq.write_table(pa.table({}), tmp_path / "none.parquet")
    pq.write_table(
        pa.Table.from_arrays([pa.array([1.0])] * 2, names=["x", "x"]), tmp_path / "twice.parquet"
    )
    for file in tmp_path.iterdir():
        publisher = sf.Publisher(sf.source(file, {"x": sf.Interval(0, 4)}), budget=1)
        with pytest.raises(sf.DataError) as caught:
            publisher.release(sf.Histogram("x", bins=4), epsilon=1)
        assert publisher.remaining == 1, file
        assert all((caught.value.asked, caught.value.obstacle, caught.value.remedy)), file


def test_shares_add_up_to_the_last_unit() -> None:
    questions = [sf.Histogram("x")] * 7
    for weights in ([1] * 7, [1, 2, 3, 4, 5, 6, 7], ["1/3", "0.1", 0.01, 5, 7, 11, "1e5"]):
        parts = sf.Plan(questions, shares=weights).costs(sf.PureDP("0.100000007"))
        assert sum(part.epsilon for part in parts) == sf.PureDP("0.100000007").epsilon
