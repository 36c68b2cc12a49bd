r"""Find where the rows of CSV text end before they are parsed, and read other encodings as UTF-8.

*Rows.* Each is read by itself. A row ends at the first line break (``\n``, ``\r\n`` or ``\r``)
outside quotation marks. A mark opens a quoted field only at the beginning of the field. Within the
field, two marks stand for one, and the next single mark closes it.

A row that does not end within ``LONGEST`` bytes, or whose last mark is never closed, is dropped up
to its first line break, and reading goes on behind that. So a stray mark or an endless field costs
no more than one line.

Text is cut into pieces of whole rows, which are parsed one by one. Arrow's own reader of streams
cannot cut them: a row longer than its block is an error there, and how it reads ``\r\n`` within
quotation marks depends on where a block ends, hence on the rows before it.

*Encodings.* What is not valid in the encoding stays invalid in UTF-8, so that it makes one field
missing and never fails. Only encodings are known that find their way again within a line: in one
that shifts its state, one field could decide how all later rows are read.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError

LONGEST = 2**20
"""How many bytes a row may have."""

WINDOW = 2**22
"""How many bytes are held, and cut, at a time."""

COMMA = b","

_MARK = ord('"')
_RETURN = ord("\r")
_LINE_BREAK = re.compile(rb"\r\n|\n|\r")


@cache
def _beside_marks(separator: bytes) -> Array:
    """Tell which bytes may stand before an opening or behind a closing mark: bool of (256,).

    A mark may stand beside another one, where two marks stand for one within a field.
    """
    is_beside = np.zeros(256, bool)
    is_beside[list(b'"\n\r' + separator)] = True
    return is_beside


@cache
def _opening(separator: bytes) -> re.Pattern[bytes]:
    return re.compile(rb'(?:\A|[\r\n]|%b)"' % re.escape(separator))


# --- pieces -------------------------------------------------------------------------------------


def pieces(
    fill: Callable[[memoryview], int], dropped: Callable[[], None], separator: bytes = COMMA
) -> Iterator[memoryview]:
    """Cut a stream into pieces of whole rows.

    Parameters
    ----------
    fill : callable
        Reads into a buffer, and returns how many bytes it read; 0 at the end.
    dropped : callable
        Called for each row that does not end in time.
    separator : bytes of length 1
        What separates the fields of a row.

    Returns
    -------
    iterator of memoryview
        All pieces share one buffer: a piece is valid until the next one is asked for.
    """
    window = Window(fill)
    while window.fill():
        stop = rows_end(window.text, window.size, window.is_final, separator)
        if stop:
            # The next piece takes the place of this one, so whoever keeps it must copy it.
            yield memoryview(window.text)[:stop]
            window.drop(stop)
        else:
            dropped()
            window.drop_first_line()


class Window:
    """The part of a stream that is held, in one buffer.

    Attributes
    ----------
    text : bytearray
    size : int
        How many bytes of ``text`` are held.
    is_final : bool
        Whether the stream has ended.
    """

    def __init__(self, fill: Callable[[memoryview], int]) -> None:
        self._fill = fill
        self.text = bytearray(WINDOW)
        self.size = 0
        self.is_final = False

    def fill(self) -> bool:
        """Fill the buffer as far as the stream goes; return whether it holds anything."""
        # A stream may give fewer bytes than there is room for: only 0 bytes are its end.
        while self.size < len(self.text) and not self.is_final:
            n_read = self._fill(memoryview(self.text)[self.size :])
            self.size += n_read
            self.is_final = not n_read
        return self.size > 0

    def drop(self, stop: int) -> None:
        """Drop the first bytes."""
        rest = self.size - stop
        self.text[:rest] = self.text[stop : self.size]
        self.size = rest

    def drop_first_line(self) -> None:
        """Drop all bytes up to the first line break, however far it is."""
        while True:
            line_break = _LINE_BREAK.search(self.text, 0, self.size)
            if line_break is None:
                self.drop(self.size)
                if self.is_final:
                    return
            elif line_break[0] == b"\r" and line_break.end() == self.size and not self.is_final:
                # The line feed that belongs to this return may not have been read yet.
                self.drop(line_break.start())
            else:
                self.drop(line_break.end())
                return
            self.fill()


# --- ends of rows -------------------------------------------------------------------------------


def rows_end(held: bytes | bytearray, size: int, is_final: bool, separator: bytes = COMMA) -> int:
    """Find where the last of the rows ends, of those before the first row that is too long.

    Returns
    -------
    int
        All rows before it are whole. 0 if the first row does not end within ``LONGEST`` bytes or,
        if these bytes are the last ones, if it does not end at all.
    """
    marks = _marks(held, size, separator)
    all_closed = is_final and len(marks) % 2 == 0
    stop = size if all_closed else _last_break(held, size, marks, is_final)
    if _are_surely_short(held, marks, stop):
        return stop
    start = 0
    for end in _breaks(held, size, marks, is_final):
        if end - start > LONGEST:
            return start
        start = end
    return stop if stop - start <= LONGEST else start


def first_row_end(held: bytes, is_final: bool, separator: bytes = COMMA) -> int:
    """Find where the first row ends; 0 if it does not end in time."""
    size = len(held)
    marks = _marks(held, size, separator)
    end = next(iter(_breaks(held, size, marks, is_final)), 0)
    if not end and is_final and len(marks) % 2 == 0:
        end = size
    return end if end <= LONGEST else 0


def _last_break(held: bytes | bytearray, size: int, marks: Array, is_final: bool) -> int:
    """Tell where the last line break outside quoted fields ends, or 0."""
    stop = size
    while True:
        position = max(held.rfind(b"\n", 0, stop), held.rfind(b"\r", 0, stop))
        if position < 0:
            return 0
        n_marks_before = bisect_left(marks, position)
        if n_marks_before % 2:
            # The break lies within a quoted field: search before the mark that opens it.
            stop = int(marks[n_marks_before - 1])
        elif held[position] == _RETURN and position == size - 1 and not is_final:
            # A line feed that belongs to this return may follow.
            stop = position
        else:
            return position + 1


def _breaks(held: bytes | bytearray, size: int, marks: Array, is_final: bool) -> Iterator[int]:
    """Tell where each line break outside quoted fields ends."""
    for line_break in _LINE_BREAK.finditer(held, 0, size):
        # An odd number of marks stands before what is within a quoted field.
        if bisect_left(marks, line_break.start()) % 2:
            continue
        if line_break[0] == b"\r" and line_break.end() == size and not is_final:
            continue
        yield line_break.end()


def _are_surely_short(held: bytes | bytearray, marks: Array, stop: int) -> bool:
    """Tell whether no row before ``stop`` can be too long.

    This is so if each half of the greatest length has a line feed outside quoted fields. It is a
    quick test that rows of ordinary length pass.
    """
    half = LONGEST // 2
    return all(
        _has_line_feed(held, marks, start, start + half)
        for start in range(0, stop - half + 1, half)
    )


def _has_line_feed(held: bytes | bytearray, marks: Array, start: int, stop: int) -> bool:
    """Tell whether there is a line feed outside quoted fields in a range."""
    position = held.find(b"\n", start, stop)
    while position >= 0:
        n_marks_before = bisect_left(marks, position)
        if n_marks_before % 2 == 0:
            return True
        if n_marks_before == len(marks):
            return False
        # Search on behind the mark that closes this field.
        position = held.find(b"\n", int(marks[n_marks_before]), stop)
    return False


# --- quotation marks ----------------------------------------------------------------------------


def _marks(held: bytes | bytearray, size: int, separator: bytes) -> Array:
    """Return the positions of the marks that open and close fields, in turn: int64 ndarray."""
    if held.find(b'"', 0, size) < 0:
        return np.zeros(0, np.int64)
    text = np.frombuffer(held, np.uint8, size)
    marks = np.flatnonzero(text == _MARK)
    # Suppose that the marks open and close in turn. This is right if each opening one follows a
    # separator, a line break or a mark, and each closing one comes before such a byte. Two marks
    # within a field then count as closing and opening it again.
    beside_marks = _beside_marks(separator)
    opening = marks[0::2]
    closing = marks[1::2]
    first_opens = opening[0] == 0 or beside_marks[text[opening[0] - 1]]
    before_opening = beside_marks[text[opening[1:] - 1]]
    after_closing = beside_marks[text[np.minimum(closing + 1, size - 1)]]
    if first_opens and before_opening.all() and after_closing.all():
        return marks
    return np.array(_marks_field_by_field(held, size, separator), np.int64)


def _marks_field_by_field(held: bytes | bytearray, size: int, separator: bytes) -> list[int]:
    """Find the positions of the marks that open and close fields, one field after another."""
    marks: list[int] = []
    opens = _opening(separator)
    opening = opens.search(held, 0, size)
    while opening is not None:
        marks.append(opening.end() - 1)
        closing = held.find(b'"', opening.end(), size)
        # Two marks stand for one within the field.
        while 0 <= closing < size - 1 and held[closing + 1] == _MARK:
            closing = held.find(b'"', closing + 2, size)
        if closing < 0:
            break
        marks.append(closing)
        opening = opens.search(held, closing + 1, size)
    return marks


# --- other encodings ----------------------------------------------------------------------------

UTF_8 = "utf-8"

_KNOWN = re.compile(
    r"ascii|utf-8(-sig)?|utf-16(-[lb]e)?|utf-32(-[lb]e)?|cp\d+|iso8859-\d+|koi8-[rtu]|mac-[a-z]+"
    r"|big5|gbk|gb2312|gb18030|shift_jis|euc_jp|euc_kr"
)
_INVALID = "\udcff"
"""What stands for bytes that are not valid: a lone surrogate, which is not valid in UTF-8."""

_CHUNK = 2**18


def encoding_of(name: str) -> str:
    """Give the name by which Python knows an encoding; "utf-8" for UTF-8 with or without a mark.

    Raises
    ------
    UsageError
        If it is unknown, or one that shifts its state.

    >>> encoding_of("Windows-1252"), encoding_of("latin1"), encoding_of("UTF8")
    ('cp1252', 'iso8859-1', 'utf-8')
    """
    try:
        canonical = codecs.lookup(name).name
    except (LookupError, ValueError):
        canonical = ""
    if not _KNOWN.fullmatch(canonical):
        raise UsageError(
            f"encoding = {name!r}",
            "it is not an encoding that is read here",
            'Write "cp1252" (Windows), "latin-1", "utf-16", "mac-roman", or another that Python '
            "knows",
        )
    return UTF_8 if canonical in ("utf-8-sig", "ascii") else canonical


def _keep_invalid(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _INVALID, error.end


codecs.register_error("sfumato.invalid", _keep_invalid)


class Transcoded:
    """A stream of another encoding, read as UTF-8."""

    def __init__(self, stream: pa.NativeFile, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("sfumato.invalid")
        self._held = b""
        self._is_final = False

    def read(self, size: int) -> bytes:
        """Read at most so many bytes of UTF-8; none at the end."""
        while not self._held and not self._is_final:
            raw = self._stream.read(_CHUNK)
            self._is_final = not raw
            text = self._decoder.decode(raw, final=self._is_final)
            self._held = text.encode("utf-8", "surrogatepass")
        first = self._held[:size]
        self._held = self._held[size:]
        return first

    def readinto(self, buffer: memoryview) -> int:
        """Read into a buffer; return how many bytes, 0 at the end."""
        read = self.read(len(buffer))
        buffer[: len(read)] = read
        return len(read)
