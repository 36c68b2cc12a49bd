"""Of a CSV file only the header can refuse: no value and no row changes what is refused, or how another row is read."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow
import pytest

import sfumato as sf
from sfumato.data import count, step_reader
from sfumato.data.reader import Losses
from sfumato.data.readers import csv_rows
from sfumato.data.readers.csv import CsvFile, RowForm, read_rows
from sfumato.domain import grid_axis
from sfumato.lattice import Lattice

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


def counts(path: Path, content: bytes) -> list[list[int]]:
    """What each lattice counts; the table is asked for before the charge, too."""
    path.write_bytes(content)
    src = sf.source(path, AXES)
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
    "a day that is not": (b"1e,2020-02-30,NA,T,1.5.\n", MISSING),
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
    before = counts(tmp_path / "t.csv", HEAD + GOOD * 40)
    if place == "first":
        content = HEAD + text + GOOD * 40
    elif place == "middle":
        content = HEAD + GOOD * 20 + text + GOOD * 20
    else:
        content = HEAD + GOOD * 40 + text.rstrip(b"\n")
    after = counts(tmp_path / "t.csv", content)
    assert added(before, after) == more
    for ending in (b"\r\n", b"\r"):
        other = content.replace(b"\n", ending)
        assert counts(tmp_path / "t.csv", b"\xef\xbb\xbf" + other) == after


def test_a_row_without_an_end_costs_its_first_line_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "LONGEST", 256)
    monkeypatch.setattr(csv_rows, "WINDOW", 512)
    before = counts(tmp_path / "t.csv", HEAD + GOOD * 40)
    for stray in (b'31,2020,"a,true,1\n', b"3" * 300 + b",x,x,x,x\n", b"9" * 5000 + b"\n"):
        for content in (stray + GOOD * 40, GOOD * 20 + stray + GOOD * 20, GOOD * 40 + stray):
            assert counts(tmp_path / "t.csv", HEAD + content) == before
    assert counts(tmp_path / "t.csv", HEAD + GOOD * 40 + b'31,2020,"a,true,1') == before


def test_a_row_of_almost_a_megabyte_is_a_row(tmp_path: Path) -> None:
    longest = csv_rows.LONGEST - len(b"31,2020-01-01,,true,1\n")
    for size, cells in ((longest, {2: 1}), (longest + 1, {})):
        row = b"31,2020-01-01," + b"k" * size + b",true,1\n"
        path = tmp_path / "t.csv"
        assert added(counts(path, HEAD + GOOD), counts(path, HEAD + row + GOOD))[2] == cells


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


# --- the cutting of rows ------------------------------------------------------------------------------------------------


def cut(data: bytes, longest: int) -> tuple[list[bytes], int]:
    """Rows by the rule, sign by sign, and how many were dropped."""
    rows: list[bytes] = []
    dropped = start = 0
    while start < len(data):
        end = _row_end(data, start)
        if end is None or end - start > longest:
            dropped += 1
            ends = [data.find(sign, start) for sign in (b"\n", b"\r")]
            at = min((end for end in ends if end >= 0), default=len(data))
            start = at + (2 if data[at : at + 2] == b"\r\n" else 1)
        else:
            rows.append(data[start:end])
            start = end
    return rows, dropped


def _row_end(data: bytes, at: int) -> int | None:
    state = "start"
    while at < len(data):
        sign = data[at : at + 1]
        if state == "quoted":
            if sign == b'"' and data[at + 1 : at + 2] == b'"':
                at += 1
            elif sign == b'"':
                state = "within"
        elif sign in (b"\n", b"\r"):
            return at + (2 if data[at : at + 2] == b"\r\n" else 1)
        elif state == "start" and sign == b'"':
            state = "quoted"
        else:
            state = "start" if sign == b"," else "within"
        at += 1
    return None if state == "quoted" else len(data)


def parsed(rows: list[bytes], names: list[str]) -> Iterator[tuple[bytes | None, ...]]:
    """Each row by itself, as Arrow parses it."""
    for row in rows:
        if row.strip(b"\r\n") or len(names) == 1:
            read = arrow.ReadOptions(column_names=names, block_size=len(row) + 1)
            rules = arrow.ParseOptions(
                newlines_in_values=True,
                ignore_empty_lines=len(names) > 1,
                invalid_row_handler=lambda _: "skip",
            )
            binary = arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.binary()))
            table = arrow.read_csv(pa.BufferReader(row), read, rules, binary)
            yield from zip(*(table[name].to_pylist() for name in names), strict=True)


@pytest.mark.parametrize("seed", range(4))
def test_pieces_hold_the_rows_of_the_rule_wherever_they_are_cut(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random text of marks, commas and line breaks, in pieces of every size, beside each row parsed alone."""
    rng = random.Random(seed)
    for _ in range(250):
        names = ["a"] if rng.random() < 0.3 else ["a", "b"]
        marks = ['"'] * rng.choice([0, 1, 3])
        signs = [*marks, ",", "\n", "\r", "\r\n", " ", "a", "1", "", "\0"]
        data = "".join(rng.choice(signs) for _ in range(rng.randrange(80))).encode()
        longest = rng.choice([8, 16, 24, 1000])
        monkeypatch.setattr(csv_rows, "LONGEST", longest)
        monkeypatch.setattr(csv_rows, "WINDOW", longest * rng.choice([2, 4]))
        place, lost = 0, []

        def fill(into: memoryview) -> int:
            nonlocal place
            part = data[place : place + rng.randint(1, len(into))]  # noqa: B023
            into[: len(part)] = part
            place += len(part)
            return len(part)

        whole, found = [], []
        for piece in csv_rows.pieces(fill, lambda: lost.append(1)):  # noqa: B023
            whole.append(bytes(piece))
            if bytes(piece).strip(b"\r\n") or len(names) == 1:
                table = read_rows(piece, RowForm(names, names, []), Losses())
                found += zip(*(table[name].to_pylist() for name in names), strict=True)
        rows, dropped = cut(data, longest)
        assert (b"".join(whole), len(lost)) == (b"".join(rows), dropped), data
        assert found == list(parsed(rows, names)), data


def test_losses_are_counted_for_the_custodian(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'age,kind\n1,a\nx,\xff\n\n1\n1,2,3\nNA,\n"1,a\n')
    losses = Losses()
    columns = {"age": TENS.axes[0], "kind": LATTICES[2].axes[0]}
    rows = sum(len(batch) for batch in CsvFile(path, "t.csv").batches_noting(columns, losses))
    assert (rows, losses.wrong_length, losses.unended) == (3, 2, 1)
    assert (losses.unparsed, losses.not_utf8) == ({"age": 1, "kind": 1}, {"kind": 1})


# --- rows that make the steps of a stream -------------------------------------------------------------------------------


def test_rows_of_a_stream_that_do_not_parse_are_dropped() -> None:
    columns = step_reader.StepColumns("day", "x")
    rows = [
        "day,x",
        "1,2",
        "1",
        "1,2,3",
        "1,two",
        "1,nan",
        "1,",
        "2,1e3",
        '2,"' + "9" * 200_000 + '"',
        "2,4",
    ]
    found = [(each.event, each.increment) for each in step_reader.from_csv(rows, columns)]
    assert found == [("1", [2.0]), ("2", [1000.0, 4.0])]
