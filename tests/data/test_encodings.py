"""Other encodings are read as UTF-8, and what is not valid in them spoils one field alone."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.data.readers.csv_rows import Transcoded, encoding_of

ENCODINGS = ("cp1252", "latin-1", "utf-16", "utf-16-be", "utf-32", "shift_jis", "gb18030", "koi8-r")


class Slow(io.BytesIO):
    """Gives a few bytes at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(3, size or 3))


def everything(stream: Transcoded, size: int = 2**20) -> bytes:
    found = b""
    while piece := stream.read(size):
        found += piece
    return found


@given(st.sampled_from(ENCODINGS), st.text(), st.sampled_from([1, 2, 7, 2**20]))
def test_text_is_the_same_in_utf_8(encoding: str, text: str, size: int) -> None:
    raw = text.encode(encoding, "ignore")
    wanted = raw.decode(encoding).encode()
    assert everything(Transcoded(Slow(raw), encoding), size) == wanted
    buffer = bytearray(len(wanted) + 1)
    stream = Transcoded(io.BytesIO(raw), encoding)
    filled = 0
    while n_read := stream.readinto(memoryview(buffer)[filled:]):
        filled += n_read
    assert bytes(buffer[:filled]) == wanted


@pytest.mark.parametrize(
    ("encoding", "raw", "n_valid_lines"),
    [
        ("cp1252", b"a\n\x81b\nc", 2),
        ("utf-16-le", "a\n\ud800b\nc".encode("utf-16-le", "surrogatepass"), 2),
        ("utf-16", "a\nb".encode("utf-16") + b"\x41", 1),
        ("shift_jis", b"a\n\x85\nc", 2),
        ("euc_jp", b"a\n\xff\nc", 2),
        ("gb18030", b"a\n\xff\nc", 2),
    ],
)
def test_bytes_that_are_not_valid_stay_invalid_in_their_line(
    encoding: str, raw: bytes, n_valid_lines: int
) -> None:
    lines = everything(Transcoded(io.BytesIO(raw), encoding)).split(b"\n")
    valid = [line for line in lines if line.decode("utf-8", "replace").encode() == line]
    assert (len(lines), len(valid)) == (raw.count(b"\n") + 1, n_valid_lines)


@pytest.mark.parametrize(
    "name", ["utf-7", "iso2022_jp", "hz", "base64", "rot13", "idna", "cp", "no such", "a\0b", "ütf"]
)
def test_encodings_that_are_not_read_are_refused(name: str) -> None:
    """One that shifts its state would let one field decide how later rows are read."""
    with pytest.raises(sf.UsageError, match="not an encoding that is read here"):
        encoding_of(name)


def test_other_errors_are_not_swallowed() -> None:
    with pytest.raises(UnicodeEncodeError):
        "é".encode("ascii", "sfumato.invalid")


def test_names_of_encodings() -> None:
    given_: Any = {"UTF8": "utf-8", "utf-8-sig": "utf-8", "ANSI_X3.4-1968": "utf-8"}
    assert {name: encoding_of(name) for name in given_} == given_
