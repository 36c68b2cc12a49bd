"""Read text files of other encodings as UTF-8.

What is not valid in the encoding stays invalid in UTF-8, so that it makes one field missing and
never fails. Only encodings are known that find their way again within a line: in one that shifts
its state, one field could decide how all later rows are read.
"""

from __future__ import annotations

import codecs
import re
from typing import Protocol

from sfumato.errors import UsageError

UTF_8 = "utf-8"

_KNOWN = re.compile(
    r"ascii|utf-8(-sig)?|utf-16(-[lb]e)?|utf-32(-[lb]e)?|cp\d+|iso8859-\d+|koi8-[rtu]|mac-[a-z]+"
    r"|big5|gbk|gb2312|gb18030|shift_jis|euc_jp|euc_kr"
)
_INVALID = "\udcff"
"""What stands for bytes that are not valid: a lone surrogate, which is not valid in UTF-8."""

_CHUNK = 2**18


class Stream(Protocol):
    """What can be read piece by piece, such as an open file."""

    def read(self, size: int, /) -> bytes:
        """Read at most so many bytes; none at the end."""


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
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        found = ""
    if not _KNOWN.fullmatch(found):
        raise UsageError(
            f"encoding = {name!r}",
            "it is not an encoding that is read here",
            'Write "cp1252" (Windows), "latin-1", "utf-16", "mac-roman", or another that Python '
            "knows",
        )
    return UTF_8 if found in ("utf-8-sig", "ascii") else found


def _keep_invalid(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _INVALID, error.end


codecs.register_error("sfumato.invalid", _keep_invalid)


class Transcoded:
    """A stream of another encoding, read as UTF-8."""

    def __init__(self, stream: Stream, encoding: str) -> None:
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
        found = self._held[:size]
        self._held = self._held[size:]
        return found

    def readinto(self, buffer: memoryview) -> int:
        """Read into a buffer; return how many bytes, 0 at the end."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)
