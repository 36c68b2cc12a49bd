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
import io
import re
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa

from sfumato.basics import Array
from sfumato.errors import UsageError

# How many bytes a row may have.
LONGEST = 2**20

# How many bytes are held, and cut, at a time.
WINDOW = 2**22

COMMA = b","

_MARK = ord('"')
_LINE_BREAK = re.compile(rb"\r\n|\n|\r")


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
    end = _unquoted_end(held, size, is_final)
    if end is not None:
        return end
    breaks, is_closed = _breaks(held, size, is_final, separator)
    stop = size if is_final and is_closed else _last(breaks) + 1
    n_words = LONGEST // 2 // _WORD
    if n_words:
        # No row can be too long if each half of the greatest length has a break: a quick test that
        # rows of ordinary length pass.
        n_halves = stop // (n_words * _WORD)
        halves = breaks[: n_halves * n_words].reshape(n_halves, n_words)
        if halves.any(axis=1).all():
            return stop
    starts = np.concatenate([[0], _positions(breaks) + 1])
    too_long = np.flatnonzero(np.diff(starts, append=stop) > LONGEST)
    return int(starts[too_long[0]]) if len(too_long) else stop


def _unquoted_end(held: bytes | bytearray, size: int, is_final: bool) -> int | None:
    """Find the same of text without quotation marks whose rows are short; None: it may be other."""
    if held.find(b'"', 0, size) >= 0:
        return None
    stop = size
    if not is_final:
        # A line feed that belongs to a return at the end may not have been read yet.
        stop = 1 + max(held.rfind(b"\n", 0, size), held.rfind(b"\r", 0, size - 1))
    half = LONGEST // 2
    halves = range(0, stop - half + 1, half)
    has_breaks = all(held.find(b"\n", start, start + half) >= 0 for start in halves)
    return stop if has_breaks else None


def first_row_end(held: bytes, is_final: bool, separator: bytes = COMMA) -> int:
    """Find where the first row ends; 0 if it does not end in time."""
    size = len(held)
    breaks, is_closed = _breaks(held, size, is_final, separator)
    ends = _positions(breaks) + 1
    if not len(ends):
        ends = np.array([size if is_final and is_closed else 0])
    end = int(ends[0])
    return end if end <= LONGEST else 0


def _breaks(
    held: bytes | bytearray, size: int, is_final: bool, separator: bytes
) -> tuple[Array, bool]:
    """Tell which bytes end a line outside quoted fields, and whether each such field is closed.

    Returns
    -------
    breaks : uint64 ndarray
        Bits, as of ``_bits``.
    is_closed : bool
    """
    text = np.frombuffer(held, np.uint8, size)
    feeds = _bits(text == ord("\n"))
    returns = np.zeros_like(feeds)
    if held.find(b"\r", 0, size) >= 0:
        returns = _bits(text == ord("\r"))
    end = _bit(size - 1)
    continues = _before(feeds)
    if not is_final:
        # A line feed that belongs to a return at the end may not have been read yet.
        continues[-1] |= end
    breaks = feeds | (returns & ~continues)
    marks = _bits(text == _MARK)
    if not marks.any():
        return breaks, True
    within = _from_odd_to_even(marks)
    others = _bits(text == separator[0]) | feeds | returns
    if not _are_in_turn(marks, within, others, end):
        is_mark = np.zeros(size, bool)
        is_mark[_marks_field_by_field(held, size, separator)] = True
        within = _from_odd_to_even(_bits(is_mark))
    return breaks & ~within, not within[-1] & end


# --- quotation marks ----------------------------------------------------------------------------


def _are_in_turn(marks: Array, within: Array, others: Array, end: np.uint64) -> bool:
    """Tell whether the marks open and close fields in turn.

    This is so if each opening one follows a separator, a line break or a mark, and each closing one
    comes before such a byte. Two marks within a field then count as closing and opening it again.

    Parameters
    ----------
    marks, within : uint64 ndarray
        Bits: the marks, and what lies within fields if they open and close in turn.
    others : uint64 ndarray
        Bits: the separators and line breaks.
    end : uint64
        The bit of the last byte.
    """
    beside = others | marks
    may_open = beside << np.uint64(1)
    may_open[1:] |= beside[:-1] >> np.uint64(_WORD - 1)
    may_open[0] |= _bit(0)
    may_close = _before(beside)
    # What follows the last byte is not known yet, or nothing does.
    may_close[-1] |= end
    return not ((marks & within & ~may_open) | (marks & ~within & ~may_close)).any()


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


# --- bits -----------------------------------------------------------------------------------------

# One bit for each byte of text: 64 bytes are looked at in one step.

_WORD = 64


def _bits(is_set: Array) -> Array:
    """Pack booleans, the first in the lowest bit of the first word: uint64 ndarray."""
    words = np.zeros(-(-len(is_set) // _WORD), "<u8")
    packed = np.packbits(is_set, bitorder="little")
    words.view(np.uint8)[: len(packed)] = packed
    return words


def _bit(place: int) -> np.uint64:
    return np.uint64(1 << place % _WORD)


def _before(bits: Array) -> Array:
    """Return the bits of the bytes before those whose bits are set."""
    moved = bits >> np.uint64(1)
    moved[:-1] |= bits[1:] << np.uint64(_WORD - 1)
    return np.asarray(moved)


def _from_odd_to_even(bits: Array) -> Array:
    """Set all bits from each first, third, fifth one up to before the one that follows it."""
    parity = bits.copy()
    for distance in (1, 2, 4, 8, 16, 32):
        parity ^= parity << np.uint64(distance)
    is_odd = np.bitwise_xor.accumulate(parity >> np.uint64(_WORD - 1))
    # As a word, the number -1 has all bits set.
    parity[1:] ^= -is_odd[:-1]
    return parity


def _positions(bits: Array) -> Array:
    """Return where bits are set: int64 ndarray."""
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))


def _last(bits: Array) -> int:
    """Return where the last bit is set; -1 for none."""
    words = np.flatnonzero(bits)
    return _WORD * int(words[-1]) + int(bits[words[-1]]).bit_length() - 1 if len(words) else -1


# --- other encodings ----------------------------------------------------------------------------

UTF_8 = "utf-8"

_KNOWN = re.compile(
    r"ascii|utf-8(-sig)?|utf-16(-[lb]e)?|utf-32(-[lb]e)?|cp\d+|iso8859-\d+|koi8-[rtu]|mac-[a-z]+"
    r"|big5|gbk|gb2312|gb18030|shift_jis|euc_jp|euc_kr"
)
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
    return "\udcff", error.end  # a lone surrogate, which is not valid in UTF-8


codecs.register_error("sfumato.invalid", _keep_invalid)


class Transcoded:
    """A stream of another encoding, read as UTF-8."""

    def __init__(self, stream: pa.NativeFile, encoding: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding, "sfumato.invalid", newline="")
        self._held = b""

    def read(self, size: int) -> bytes:
        """Read at most so many bytes of UTF-8; none at the end."""
        if not self._held:
            self._held = self._text.read(_CHUNK).encode("utf-8", "surrogatepass")
        first = self._held[:size]
        self._held = self._held[size:]
        return first

    def readinto(self, buffer: memoryview) -> int:
        """Read into a buffer; return how many bytes, 0 at the end."""
        read = self.read(len(buffer))
        buffer[: len(read)] = read
        return len(read)
