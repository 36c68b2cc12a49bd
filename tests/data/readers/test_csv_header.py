"""The header of a CSV file says which option reads the file, by its form alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data.refusals import CANARY, refuses, write
from data.releases import released
from sfumato.data.readers.csv import likely_separator
from sfumato.domain.domain import Interval

TENS = Interval(0, 50, step=1)


def tens(path: Path, **options: Any) -> list[int]:
    return released(path, "age", TENS, 5, **options)


FORMS: dict[str, tuple[bytes, tuple[str, ...], dict[str, Any]]] = {
    "semicolons": (
        b"age;kind;a;b;c;d\n31;x;;;;\n",
        ("has 5 semicolons and no comma", 'separator=";"', '--separator ";"', 'decimal=","'),
        {"separator": ";"},
    ),
    "semicolons and a comma": (
        b"kind;age;name, first\nx;31;y\n",
        ("has 2 semicolons and 1 comma", 'separator=";"'),
        {"separator": ";"},
    ),
    "tabs": (
        b"age\tkind\n31\tx\n",
        ("has 1 tab and no comma", 'separator="tab"'),
        {"separator": "tab"},
    ),
    "bars": (b"age|kind\n31|x\n", ("1 bar and no comma", 'separator="|"'), {"separator": "|"}),
    "UTF-16": (
        "age,größe\n31,2\n".encode("utf-16"),
        ("first line", "not UTF-8", "UTF-16", 'encoding="utf-16"'),
        {"encoding": "utf-16"},
    ),
    "UTF-16 without a mark": (
        "age\n31\n".encode("utf-16-le"),
        ("not UTF-8", 'encoding="utf-16-le"'),
        {"encoding": "utf-16-le"},
    ),
    "UTF-16, the other way round": (
        "age\n31\n".encode("utf-16-be"),
        ("not UTF-8", 'encoding="utf-16-be"'),
        {"encoding": "utf-16-be"},
    ),
    "Windows": (
        "age,größe\n31,2\n".encode("cp1252"),
        ("first line", "not UTF-8", 'encoding="cp1252"'),
        {"encoding": "cp1252"},
    ),
    "lines above": (
        b'"Visits, all of them\n\nage,kind\n31,x\n',
        ("quotation mark", "header_row=3"),
        {"header_row": 3},
    ),
    "a title above": (
        b"Visits of 2024\r\n\r\nage,kind\r\n31,x\r\n",
        ("the first line has one name only", "header_row=2", "--header-row 2"),
        {"header_row": 2},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_option_that_the_message_names_reads_the_file(form: str, tmp_path: Path) -> None:
    content, words, options = FORMS[form]
    path = write(tmp_path, content)
    refuses(path, *words)
    assert tens(path, **options) == [0, 0, 0, 1, 0]


def test_endings_say_how_a_file_is_separated(tmp_path: Path) -> None:
    assert tens(write(tmp_path, "kind\tage\nx\t31\n", "t.tsv")) == [0, 0, 0, 1, 0]
    assert tens(write(tmp_path, "kind,age\nx,31\n", "t.txt")) == [0, 0, 0, 1, 0]
    refuses(write(tmp_path, "kind,age\nx,31\n", "u.tsv"), "1 comma and no tab", 'separator=","')


def test_names_have_no_blanks_around_them(tmp_path: Path) -> None:
    assert tens(write(tmp_path, 'kind, age ," more"\nx, 31,\n')) == [0, 0, 0, 1, 0]


def test_a_file_of_one_column_needs_no_separator(tmp_path: Path) -> None:
    path = write(tmp_path, "age\n31\n\n12\n7;8\n")
    assert tens(path) == tens(path, separator=";", decimal=",") == [0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (b"age\n31\n", {"header_row": 9}, ("it has no line 9",)),
        (b"age\n31\n\n\n", {"header_row": 4}, ("it has no line 4",)),
        (b"age,\x81\n31,\n", {"encoding": "cp1252"}, ("not text in cp1252",)),
        (b"x\nage,\xff\n31,\n", {"header_row": 2}, ("line 2, which names", "not UTF-8")),
        (f"{CANARY};{CANARY}\n1;2\n".encode(), {}, ("1 semicolon and no comma",)),
        (f"{CANARY}\n1\n".encode(), {"header_row": 2}, ("line 2 has one name only",)),
    ],
)
def test_a_header_that_cannot_be_read_is_refused(
    content: bytes, options: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    refuses(write(tmp_path, content), *words, **options)


def test_no_separator_is_likely_in_one_name() -> None:
    assert likely_separator("age") is None
