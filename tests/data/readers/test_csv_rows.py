"""Rows of CSV end where the rule says, wherever the text is cut into pieces."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv as arrow
import pytest

from sfumato.basics.buffers import copy_of
from sfumato.data.reader import Losses
from sfumato.data.readers import csv_rows
from sfumato.data.readers.csv import CsvForm, read_rows


def cut_by_the_rule(data: bytes, longest: int, separator: bytes = b",") -> tuple[list[bytes], int]:
    """Rows by the rule, sign by sign, and how many were dropped."""
    rows: list[bytes] = []
    dropped = start = 0
    while start < len(data):
        end = _row_end(data, start, separator)
        if end is None or end - start > longest:
            dropped += 1
            ends = [data.find(sign, start) for sign in (b"\n", b"\r")]
            at = min((end for end in ends if end >= 0), default=len(data))
            start = at + (2 if data[at : at + 2] == b"\r\n" else 1)
        else:
            rows.append(data[start:end])
            start = end
    return rows, dropped


def _row_end(data: bytes, at: int, separator: bytes) -> int | None:
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
            state = "start" if sign == separator else "within"
        at += 1
    return None if state == "quoted" else len(data)


def parsed_one_by_one(
    rows: list[bytes], names: list[str], separator: str
) -> Iterator[tuple[bytes | None, ...]]:
    """Each row by itself, as Arrow parses it."""
    for row in rows:
        if row.strip(b"\r\n") or len(names) == 1:
            read = arrow.ReadOptions(column_names=names, block_size=len(row) + 1)
            rules = arrow.ParseOptions(
                delimiter=separator,
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
    """Random text with marks, separators and line breaks, cut into pieces of every size."""
    rng = random.Random(seed)
    separator = ",;\t|"[seed]
    for _ in range(100):
        names = ["a"] if rng.random() < 0.3 else ["a", "b"]
        marks = ['"'] * rng.choice([0, 1, 3])
        signs = [*marks, separator, ",", "\n", "\r", "\r\n", " ", "a", "1", "", "\0"]
        data = "".join(rng.choice(signs) for _ in range(rng.randrange(80))).encode()
        longest = rng.choice([8, 16, 24, 1000])
        monkeypatch.setattr(csv_rows, "LONGEST", longest)
        monkeypatch.setattr(csv_rows, "WINDOW", longest * rng.choice([2, 4]))
        place = 0
        lost = []

        def fill(into: memoryview) -> int:
            nonlocal place
            part = data[place : place + rng.randint(1, len(into))]  # noqa: B023
            into[: len(part)] = part
            place += len(part)
            return len(part)

        whole = []
        found = []
        for piece in csv_rows.pieces(fill, lambda: lost.append(1), separator.encode()):  # noqa: B023
            whole.append(bytes(piece))
            if bytes(piece).strip(b"\r\n") or len(names) == 1:
                table = read_rows(copy_of(piece), CsvForm(names, names, separator), Losses())
                found += zip(*(table[name].to_pylist() for name in names), strict=True)
        rows, dropped = cut_by_the_rule(data, longest, separator.encode())
        assert (b"".join(whole), len(lost)) == (b"".join(rows), dropped), data
        assert found == list(parsed_one_by_one(rows, names, separator)), data


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
def test_short_rows_without_marks_are_cut_behind_their_ends_alone(
    ending: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a window ends: also between a return and the line feed that belongs to it."""
    data = (b"1" + ending) * 60
    monkeypatch.setattr(csv_rows, "LONGEST", 8)
    for window in range(9, 40):
        monkeypatch.setattr(csv_rows, "WINDOW", window)
        lost: list[int] = []
        pieces = csv_rows.pieces(io.BytesIO(data).readinto, lambda: lost.append(1))  # noqa: B023
        whole = [bytes(piece) for piece in pieces]
        assert (b"".join(whole), lost) == (data, [])
        assert [piece for piece in whole if cut_by_the_rule(piece, 8)[0][0] != b"1" + ending] == []
