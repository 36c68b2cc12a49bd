"""Where the rows of CSV text end: found before anything is parsed, so that each row is read by itself.

A row ends at the first line break (``\\n``, ``\\r\\n`` or ``\\r``) outside quotation marks. A mark
opens a quoted field only at the field's beginning; within it two marks stand for one, and the next
single one closes it. A row that does not end within ``LONGEST`` bytes, or whose last mark is never
closed, is dropped up to its first line break, and reading goes on behind that: a stray mark or an
endless field costs no more than that.

Text is cut into pieces of whole rows, which are parsed one by one. Arrow's own reader of streams is
not asked to cut: a row longer than its block is an error there, and what it makes of ``\\r\\n`` in
quotation marks depends on where a block ends, hence on the rows before it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np

from sfumato.arrays import Array

LONGEST = 2**20
"""How many bytes a row may have."""

WINDOW = 2**22
"""How many bytes are held, and cut, at a time."""

_MARK, _COMMA, _LINE, _RETURN = b'",\n\r'
_APART = np.zeros(256, bool)
_APART[[_MARK, _COMMA, _LINE, _RETURN]] = True
_OPENING = re.compile(rb'(?:\A|[,\r\n])"')
_BREAK = re.compile(rb"\r\n|\n|\r")


def pieces(fill: Callable[[memoryview], int], dropped: Callable[[], None]) -> Iterator[memoryview]:
    """Cut a stream into pieces of whole rows.

    Parameters
    ----------
    fill : callable
        Reads into a buffer, and says how many bytes; 0 at the end.
    dropped : callable
        Called for each row that does not end.

    Returns
    -------
    iterator of memoryview
        Each piece is good until the next one is asked for: they share one buffer.
    """
    held = Held(fill)
    while held.more():
        stop = rows_end(held.text, held.size, held.final)
        if stop:
            yield memoryview(held.text)[:stop]
            held.forget(stop)
        else:
            dropped()
            held.forget_first_line()


class Held:
    """The part of a stream that is looked at, in one buffer."""

    def __init__(self, fill: Callable[[memoryview], int]) -> None:
        self._fill = fill
        self.text = bytearray(WINDOW)
        self.size = 0
        self.final = False

    def more(self) -> bool:
        """Fill the buffer as far as the stream goes; whether there is anything in it."""
        while self.size < len(self.text) and not self.final:
            read = self._fill(memoryview(self.text)[self.size :])
            self.size += read
            self.final = not read
        return self.size > 0

    def forget(self, stop: int) -> None:
        """Drop the first bytes."""
        rest = self.size - stop
        self.text[:rest] = self.text[stop : self.size]
        self.size = rest

    def forget_first_line(self) -> None:
        """Drop all up to the first line break, wherever it is."""
        while True:
            found = _BREAK.search(self.text, 0, self.size)
            if found is not None:
                # A return that comes last may belong to a line feed.
                settled = found[0] != b"\r" or found.end() < self.size or self.final
                self.forget(found.end() if settled else found.start())
                if settled:
                    return
            elif self.final:
                self.forget(self.size)
                return
            else:
                self.forget(self.size)
            self.more()


def rows_end(held: bytes | bytearray, size: int, final: bool) -> int:
    """Where the last row ends, of those that end in time: all rows before it are whole, and none is too long.

    0: the first row itself does not end within ``LONGEST`` bytes, or, if these bytes are the final
    ones, at all.
    """
    marks = _marks(held, size)
    whole = final and len(marks) % 2 == 0
    stop = size if whole else _last_break(held, size, marks, final)
    if _all_short(held, marks, stop):
        return stop
    start = 0
    for end in _breaks(held, size, marks, final):
        if end - start > LONGEST:
            return start
        start = end
    return stop if stop - start <= LONGEST else start


def first_row_end(held: bytes, final: bool) -> int:
    """Where the first row ends, or 0 if it does not end in time."""
    size = len(held)
    marks = _marks(held, size)
    end = next(iter(_breaks(held, size, marks, final)), 0)
    if not end and final and len(marks) % 2 == 0:
        end = size
    return end if end <= LONGEST else 0


def _marks(held: bytes | bytearray, size: int) -> Array:
    """Marks that open and close, in turn: int64 ndarray."""
    if held.find(b'"', 0, size) < 0:
        return np.zeros(0, np.int64)
    text = np.frombuffer(held, np.uint8, size)
    marks = np.flatnonzero(text == _MARK)
    # Where every second mark follows a comma, a line break or a mark, and every other one comes before such a sign,
    # counting them is enough: two marks within a field close and open it again.
    opening = marks[0::2]
    closing = marks[1::2]
    before = _APART[text[opening[1:] - 1]]
    after = _APART[text[np.minimum(closing + 1, size - 1)]]
    first = opening[0] == 0 or _APART[text[opening[0] - 1]]
    if first and before.all() and after.all():
        return marks
    return np.array(_walked(held, size), np.int64)


def _walked(held: bytes | bytearray, size: int) -> list[int]:
    """The same, field by field."""
    found: list[int] = []
    opening = _OPENING.search(held, 0, size)
    while opening is not None:
        found.append(opening.end() - 1)
        closing = held.find(b'"', opening.end(), size)
        while 0 <= closing < size - 1 and held[closing + 1] == _MARK:
            closing = held.find(b'"', closing + 2, size)
        if closing < 0:
            break
        found.append(closing)
        opening = _OPENING.search(held, closing + 1, size)
    return found


def _last_break(held: bytes | bytearray, size: int, marks: Array, final: bool) -> int:
    """Where the last line break outside marks ends, or 0."""
    stop = size
    while True:
        at = max(held.rfind(b"\n", 0, stop), held.rfind(b"\r", 0, stop))
        place = bisect_left(marks, at)
        if at < 0:
            return 0
        if place % 2:
            stop = int(marks[place - 1])
        elif held[at] == _RETURN and at == size - 1 and not final:
            stop = at  # a line feed may follow
        else:
            return at + 1


def _all_short(held: bytes | bytearray, marks: Array, stop: int) -> bool:
    """Whether it is plain that no row up to there is too long: each half of that length has a line feed outside marks."""
    half = LONGEST // 2
    for start in range(0, stop - half + 1, half):
        at = held.find(b"\n", start, start + half)
        while at >= 0:
            place = bisect_left(marks, at)
            if place % 2 == 0:
                break
            at = held.find(b"\n", int(marks[place]), start + half) if place < len(marks) else -1
        if at < 0:
            return False
    return True


def _breaks(held: bytes | bytearray, size: int, marks: Array, final: bool) -> Iterator[int]:
    """Where each line break outside marks ends."""
    for found in _BREAK.finditer(held, 0, size):
        if bisect_left(marks, found.start()) % 2:
            continue
        if found[0] == b"\r" and found.end() == size and not final:
            continue
        yield found.end()
