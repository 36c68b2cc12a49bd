"""Only the header of a CSV file can refuse it: each row is read by itself, whatever it holds."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from data import random_tables
from data.refusals import CANARY, refuses, write
from data.releases import released
from sfumato.data import count, source
from sfumato.data.reader import Losses
from sfumato.data.readers import csv_rows
from sfumato.data.readers.csv import CsvFile
from sfumato.domain.domain import Categories, Domain, Interval, grid_axis
from sfumato.domain.lattice import LabelAxis, Lattice

WRONG_HEADERS: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "no such column": (f"agee,p\n{CANARY},u\n".encode(), ("no column", "did you mean 'agee'")),
    "twice the same column": (f"age,age\n{CANARY},2\n".encode(), ("several columns",)),
    "a header in Latin-1": (
        f"age,Gr\xf6\xdfe\n{CANARY},2\n".encode("latin-1"),
        ("first line", "not UTF-8"),
    ),
    "UTF-16": (f"age,p\n{CANARY},2\n".encode("utf-16"), ("first line", "not UTF-8")),
    "blank lines only": (b"\n\r\n\n", ("no header",)),
    "a mark alone": (b"\xef\xbb\xbf", ("no header",)),
    "an open mark in the header": (
        f'age,"p\n{CANARY},2\n'.encode(),
        ("first line", "quotation mark"),
    ),
    "a header without an end": (b"age," + b"p" * 2**20, ("first line", "1 MB")),
}


@pytest.mark.parametrize("case", WRONG_HEADERS)
def test_a_wrong_header_refuses_the_file(case: str, tmp_path: Path) -> None:
    content, words = WRONG_HEADERS[case]
    refuses(write(tmp_path, content), *words)


def test_csv_that_is_not_what_its_name_says(tmp_path: Path) -> None:
    refuses(write(tmp_path, b"\x1f\x8b" + CANARY.encode(), "t.csv.gz"), "t.csv.gz", "compression")


def test_the_first_row_of_a_file_without_a_header_is_not_quoted(tmp_path: Path) -> None:
    refuses(
        write(tmp_path, f"x{CANARY},a\nx31,b\n"),
        "column 'age'",
        "no column of that name",
        "give the file a header",
    )
    refuses(
        write(tmp_path, f"{CANARY},a\n31,b\n"),
        "column 'age'",
        "no column of that name",
        "give the file a header",
    )


AXES = sf.Domain(
    age=sf.Interval(0, 100, step=1, missing=99),
    at=sf.Interval("2020-01-01T00:00", "2020-01-02T00:00", missing="2020-01-01T23:30"),
    kind=sf.Categories(["a", "b"], other="else", missing="unknown"),
    yes=sf.Categories([True, False], missing="unknown"),
    code=sf.Categories([1, 2], other="else", missing="unknown"),
)


HEAD = b"age,at,kind,yes,code\n"


GOOD = b"31,2020-01-01T05:00,a,true,1\n"


TENS = Lattice((grid_axis("age", AXES["age"], 10),))  # type: ignore[arg-type]


HOURS = Lattice((grid_axis("at", AXES["at"], 24),))  # type: ignore[arg-type]


LATTICES = [
    TENS,
    HOURS,
    *(sf.Histogram(name).needs(AXES).lattice for name in ("kind", "yes", "code")),
]


def counts_of(path: Path, content: bytes, **options: Any) -> list[list[int]]:
    """What each lattice counts; the table is asked for before the charge, too."""
    path.write_bytes(content)
    src = sf.source(path, AXES, **options)
    src.require(LATTICES)
    return [cube.counts.tolist() for cube in count(src, LATTICES)]


def added(one: list[list[int]], other: list[list[int]]) -> list[dict[int, int]]:
    """Which cells have more in the second, on each lattice."""
    pairs = (zip(before, after, strict=True) for before, after in zip(one, other, strict=True))
    return [{i: b - a for i, (a, b) in enumerate(each) if a != b} for each in pairs]


MISSING = [{9: 1}, {23: 1}, {3: 1}, {2: 1}, {3: 1}]


NOTHING: list[dict[int, int]] = [{}] * 5


ROWS: dict[str, tuple[bytes, list[dict[int, int]]]] = {
    "nothing parses": (b"x,y,\xff,z,w\n", MISSING),
    "Latin-1": (b"M\xfcller,\xfc,M\xfcller,\xfc,\xfc\n", MISSING),
    "empty fields": (b",,,,\n", MISSING),
    "a day that is not": (b"1e,2020-02-30,NA,maybe,1.5.\n", MISSING),
    "too short": (b"31,2020-01-01\n", NOTHING),
    "too long": (b"31,2020-01-01T05:00,a,true,1,\n", NOTHING),
    "a blank line": (b"\n", NOTHING),
    "zone and parts of a second": (
        b" 31 ,2020-01-01 06:00:00.123456789+01:00,a, TRUE ,1.0\n",
        [{3: 1}, {5: 1}, {0: 1}, {0: 1}, {0: 1}],
    ),
    "a date among times": (b'true,2020-01-01,"b",0,2\n', [{0: 1}, {0: 1}, {1: 1}, {1: 1}, {1: 1}]),
    "numbers of every make": (
        b"+5e1,2020-01-01T23,b,1,3\n",
        [{5: 1}, {23: 1}, {1: 1}, {0: 1}, {2: 1}],
    ),
    "infinities": (b"-inf,2020-01-01T05Z,z,1,inf\n", [{0: 1}, {5: 1}, {2: 1}, {0: 1}, {2: 1}]),
    "too large": (
        b"1e999,9999-12-31,z,1,99999999999999999999\n",
        [{9: 1}, {23: 1}, {2: 1}, {0: 1}, {2: 1}],
    ),
    "zero characters": (
        b"3\x001,2020\x00,a\x00,\x00,1\x00\n",
        [{9: 1}, {23: 1}, {2: 1}, {2: 1}, {3: 1}],
    ),
    "digits of other scripts": (
        "٣,２０２０-01-01,a,1,١\n".encode(),
        [{9: 1}, {23: 1}, {0: 1}, {0: 1}, {3: 1}],
    ),
}


@pytest.mark.parametrize("place", ["first", "middle", "last, without a line break"])
@pytest.mark.parametrize("row", ROWS)
def test_one_row_moves_itself_alone(
    row: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "LONGEST", 256)
    monkeypatch.setattr(csv_rows, "WINDOW", 512)
    text, more = ROWS[row]
    before = counts_of(tmp_path / "t.csv", HEAD + GOOD * 40)
    if place == "first":
        content = HEAD + text + GOOD * 40
    elif place == "middle":
        content = HEAD + GOOD * 20 + text + GOOD * 20
    else:
        content = HEAD + GOOD * 40 + text.rstrip(b"\n")
    after = counts_of(tmp_path / "t.csv", content)
    assert added(before, after) == more
    for ending in (b"\r\n", b"\r"):
        other = content.replace(b"\n", ending)
        assert counts_of(tmp_path / "t.csv", b"\xef\xbb\xbf" + other) == after


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-be", "shift_jis"])
@pytest.mark.parametrize("row", ROWS)
def test_one_row_moves_itself_alone_in_every_encoding(
    row: str, encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not valid in the encoding spoils its own field, as what is not UTF-8 does."""
    monkeypatch.setattr(csv_rows, "LONGEST", 256)
    monkeypatch.setattr(csv_rows, "WINDOW", 512)
    text, more = ROWS[row]
    invalid = {"cp1252": "\udc81", "shift_jis": "\udc85"}.get(encoding, "\ud800")
    errors = "surrogatepass" if encoding.startswith("utf") else "surrogateescape"
    rows = []
    for part in (HEAD, GOOD * 20, text, GOOD * 20):
        read = part.decode("utf-8", "replace").replace("\ufffd", invalid).replace(",", ";")
        rows.append("".join(sign if sign.isascii() or sign == invalid else "?" for sign in read))
    options = {"encoding": encoding, "separator": ";"}
    before = counts_of(tmp_path / "t.csv", (rows[0] + rows[1] * 2).encode(encoding), **options)
    content = "".join(rows).encode(encoding, errors)
    assert added(before, counts_of(tmp_path / "t.csv", content, **options)) == more


def test_a_row_without_an_end_costs_its_first_line_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "LONGEST", 256)
    monkeypatch.setattr(csv_rows, "WINDOW", 512)
    before = counts_of(tmp_path / "t.csv", HEAD + GOOD * 40)
    for stray in (b'31,2020,"a,true,1\n', b"3" * 300 + b",x,x,x,x\n", b"9" * 5000 + b"\n"):
        for content in (stray + GOOD * 40, GOOD * 20 + stray + GOOD * 20, GOOD * 40 + stray):
            assert counts_of(tmp_path / "t.csv", HEAD + content) == before
    assert counts_of(tmp_path / "t.csv", HEAD + GOOD * 40 + b'31,2020,"a,true,1') == before


def test_a_row_of_almost_a_megabyte_is_a_row(tmp_path: Path) -> None:
    longest = csv_rows.LONGEST - len(b"31,2020-01-01,,true,1\n")
    for size, cells in ((longest, {2: 1}), (longest + 1, {})):
        row = b"31,2020-01-01," + b"k" * size + b",true,1\n"
        path = tmp_path / "t.csv"
        assert added(counts_of(path, HEAD + GOOD), counts_of(path, HEAD + row + GOOD))[2] == cells


def test_in_a_file_of_one_column_a_blank_line_is_a_missing_value(tmp_path: Path) -> None:
    domain = sf.Domain(age=sf.Interval(0, 100, missing=99))
    path = tmp_path / "t.csv"
    for content, cells in (
        (b"\n\nage\n5\n\n5\n", [2, 1]),
        (b"age\r\n5\r\n5\r\n\r\n", [2, 1]),
        (b"age\n5\n5", [2, 0]),
        (b"age", [0, 0]),
    ):
        path.write_bytes(content)
        found = count(sf.source(path, domain), [Lattice((grid_axis("age", domain["age"], 2),))])  # type: ignore[arg-type]
        assert found[0].counts.tolist() == cells, content


def test_a_word_for_missing_that_one_column_lists_is_missing_in_the_others(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"one,two,x\nNA,NA,NA\nnull,null,\n")
    domain = sf.Domain(
        one=sf.Categories(["NA"], other="else", missing="unknown"),
        two=sf.Categories(["z"], other="else", missing="unknown"),
        x=sf.Interval(0, 1, missing=0),
    )
    lattices = [
        sf.Histogram(name, bins=2 if name == "x" else None).needs(domain).lattice for name in domain
    ]
    assert [cube.counts.tolist() for cube in count(sf.source(path, domain), lattices)] == [
        [1, 0, 1],
        [0, 0, 2],
        [2, 0],
    ]


def test_persons_and_keys_that_are_no_text_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,p,k\n1,M\xfcller,M\xfcller\n1,,u\n1,NA,u\n1,Ada,u\n1,Ada,u\n")
    domain = sf.Domain(x=sf.Interval(0, 2), k=sf.Keys())
    by_person = sf.source(path, domain, person="p")
    assert count(by_person, [Lattice((grid_axis("x", domain["x"], 1),))])[0].total == 1  # type: ignore[arg-type]
    cube = count(sf.source(path, domain), [sf.Histogram("k").needs(domain).lattice])[0]
    assert (cube.counts.tolist(), cube.keys["k"].to_pylist()) == ([4], ["u"])  # type: ignore[index]


def test_nothing_in_the_rows_refuses_before_a_charge(tmp_path: Path) -> None:
    rng = random.Random(1)
    path = tmp_path / "t.csv"
    for _ in range(60):
        path.write_bytes(
            HEAD + bytes(rng.choice(b'",\n\r a1-:T\xff\x00') for _ in range(rng.randrange(400)))
        )
        src = sf.source(path, AXES)
        src.require(LATTICES)
        assert all(cube.total >= 0 for cube in count(src, LATTICES))


def test_damaged_compression_fails_after_the_charge_and_quotes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    rng = random.Random(2)
    body = b"".join(b"%d,2020-01-01,a,true,1\n" % rng.randrange(10**9) for _ in range(400_000))
    whole = gzip.compress(HEAD + body, 1)
    path.write_bytes(whole[: len(whole) // 2])
    src = sf.source(path, AXES)
    src.require([TENS])
    with pytest.raises(sf.DataError, match="compression is damaged"):
        count(src, [TENS])
    path.write_bytes(whole[:20])
    with pytest.raises(sf.DataError):
        src.require([TENS])


def test_losses_are_counted_for_the_custodian(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'age,kind\n1,a\nx,\xff\n\n1\n1,2,3\nNA,\n"1,a\n')
    losses = Losses()
    columns = {"age": TENS.axes[0], "kind": LATTICES[2].axes[0]}
    pieces = CsvFile(path, "t.csv").pieces_noting(columns, losses)
    rows = sum(len(batch) for piece in pieces for batch in piece())
    assert (rows, losses.wrong_length, losses.unended) == (3, 2, 1)
    assert (losses.unparsed, losses.not_utf8) == ({"age": 1, "kind": 1}, {"kind": 1})


HUGE = 2**53


@pytest.mark.parametrize("extra", ["0.5", "1e3", "inf", "99999999999999999999", "7", "nan"])
def test_one_odd_number_in_a_csv_leaves_long_labels_apart(tmp_path: Path, extra: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "\n".join(["code", *[str(HUGE)] * 5, *[f"{HUGE + 1}"] * 4, "9007199254740992.0", extra])
        + "\n"
    )
    assert released(path, "code", sf.Categories([HUGE, HUGE + 1])) == [6, 4]
    assert released(path, "code", sf.Categories([HUGE, HUGE + 1], other="rest")) == [
        6,
        4,
        0 if extra == "nan" else 1,
    ]
    path.write_text("code\n1\nx\n")
    assert released(path, "code", sf.Categories([1, 2], missing="unknown")) == [1, 0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01 05:00",
        "2020-01-01T05:00:00Z",
        "2020-01-01T06:00:00.000000+01:00",
        "2020-01-01T05:00:00.123456789",
    ],
)
def test_times_in_csv_may_have_several_forms(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"a,b\n{text},1\n,2\n")
    for domain, cell in (
        (Domain(a=Interval("2020-01-01", "2020-01-03")), 0),
        (Domain(a=Interval("2020-01-01T00:00", "2020-01-03T00:00")), 5),
    ):
        lattice = Lattice((grid_axis("a", domain["a"], 2 if cell == 0 else 48),))
        assert random_tables.found(count(source(tmp_path / "t.csv", domain), [lattice])[0]) == {
            (cell,): 1
        }


def test_texts_that_stand_for_a_missing_value_in_csv(tmp_path: Path) -> None:
    texts = ["", "NA", "NaN", "null", "NULL", "N/A", "b"]
    (tmp_path / "t.csv").write_text(
        "\ufeffw,x\n" + "".join(f"{text},{'' if text == 'b' else text}\n" for text in texts),
        encoding="utf-8",
    )
    lattice = Lattice((LabelAxis("w", ("b", "else"), True),))
    assert count(source(tmp_path / "t.csv", Domain(w=Categories(["b"], other="else"))), [lattice])[
        0
    ].counts.tolist() == [1, 0]
    lattice = Lattice((LabelAxis("w", ("NA", "b", "else"), True),))
    assert count(
        source(tmp_path / "t.csv", Domain(w=Categories(["NA", "b"], other="else"))), [lattice]
    )[0].counts.tolist() == [1, 1, 0]
    numbers = Domain(x=Interval(0, 1))
    assert (
        count(source(tmp_path / "t.csv", numbers), [Lattice((grid_axis("x", numbers["x"], 2),))])[
            0
        ].total
        == 0
    )


def test_whole_labels_written_with_a_point_in_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("c,b\n1.0,true\n2.0,False\n,\n")
    lattices = [Lattice((LabelAxis("c", (1, 2)),)), Lattice((LabelAxis("b", (True, False)),))]
    cubes = count(
        source(tmp_path / "t.csv", Domain(c=Categories([1, 2]), b=Categories([True, False]))),
        lattices,
    )
    assert [cube.counts.tolist() for cube in cubes] == [[1, 1], [1, 1]]


def test_gzipped_csv_is_read(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "T.CSV.gz").write_bytes(gzip.compress(b"a\n0.25\n0.75\n0.8\n"))
    domain = Domain(a=Interval(0, 1))
    assert count(
        source(tmp_path / "T.CSV.gz", domain), [Lattice((grid_axis("a", domain["a"], 2),))]
    )[0].counts.tolist() == [1, 2]


def test_line_breaks_in_quotation_marks_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.data.readers.csv_rows.WINDOW", 64)
    monkeypatch.setattr("sfumato.data.readers.csv_rows.LONGEST", 32)
    (tmp_path / "t.csv").write_text("w,x\n" + '"a\n\n\nb",0.5\n' * 200)
    domain = Domain(w=Categories(["a\n\n\nb"]))
    assert count(source(tmp_path / "t.csv", domain), [Lattice((LabelAxis("w", ("a\n\n\nb",)),))])[
        0
    ].counts.tolist() == [200]


NUMBERS = [b"7", b"-7.5", b"+7", b" 7", b"7\t", b'"7"', b'" 7 "', b".5", b"5.", b"1e2", b"1E-400"]
NUMBERS += [b"1e400", b"inf", b"-Infinity", b"nan", b"NAN", b"nan(1)", b"-nan", b"0x1p3", b"1_0"]
NUMBERS += [b"", b" ", b'""', b"NA", b" NA ", b'"NA"', b"true", b"FALSE", b"\xff", b"--7"]
NUMBERS += [
    b"0.1",
    b"9007199254740993",
    b"123456789012345678901234567890",
    b"2.2250738585072011e-308",
]
LABELS = [b"a", b" a", b"", b" ", b"NA", b" NA ", b'"b"', b'"a""b"', b"\xff", b"true", b"1.0", b"c"]


@pytest.mark.parametrize("name", ["number", "label", "whole", "truth"])
def test_a_field_is_read_alike_in_a_quick_column_and_in_any_other(
    name: str, tmp_path: Path
) -> None:
    """Alone, a field decides how its column is read; beside all others, none is read at once."""
    axis = {
        "number": grid_axis(name, Interval(0, 9), 3),
        "label": LabelAxis(name, ("a", "NA", "c")),
        "whole": LabelAxis(name, (7, -7)),
        "truth": LabelAxis(name, (True, False)),
    }[name]
    fields = LABELS if name == "label" else [*NUMBERS, *LABELS]

    def read(fields: list[bytes]) -> tuple[list[object], Losses]:
        rows = b"".join(b"0," + field + b"\n" for field in fields)
        path = write(tmp_path, b"other," + name.encode() + b"\n" + rows)
        losses = Losses()
        pieces = CsvFile(path, "t").pieces_noting({name: axis}, losses)
        values = [
            value for piece in pieces for batch in piece() for value in batch[name].to_pylist()
        ]
        return [None if value != value else value for value in values], losses  # noqa: PLR0124

    together, lost = read(fields)
    alone = [read([field]) for field in fields]
    assert together == [value for values, _ in alone for value in values]
    assert lost.unparsed[name] == sum(own.unparsed[name] for _, own in alone)
    assert lost.not_utf8[name] == sum(own.not_utf8[name] for _, own in alone)
    assert len(together) == len(alone)
