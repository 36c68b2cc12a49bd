"""Write texts and plain values as TOML, so that any reader of TOML reads them back as they were.

JSON will not do: it writes characters such as emoji as pairs of surrogates, which TOML forbids, and
leaves DEL as it is, which TOML forbids, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sfumato.errors import UsageError, printable, shown

BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(text: str) -> str:
    r"""A text as a basic string of TOML, without characters that steer a terminal or hide in it.

    Raises
    ------
    UsageError
        If it holds a lone surrogate, as the name of a file may that is not UTF-8.

    >>> print(toml_text('say "a\tb"'))
    "say \"a\u0009b\""
    """
    return f'"{"".join(map(_written, text))}"'


def _written(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    # Whatever is printed on stdout is made printable; so nothing may be left to do there.
    if printable(character) == character:
        return character
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise UsageError(
            f"writing {shown(printable(character))} into a plan",
            "it is half a character, and a plan holds whole ones only",
            "Rename the file or the column",
        )
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def toml_key(name: str) -> str:
    """A name as a key of TOML, quoted where it has to be.

    >>> toml_key("age"), toml_key("age in years")
    ('age', '"age in years"')
    """
    return name if BARE.fullmatch(name) else toml_text(name)


def toml_value(value: object) -> str:
    """A text, a number, a truth value, a list or a table of these as TOML, on one line.

    >>> print(toml_value({"type": "categories", "labels": [False, "a", 2]}))
    { type = "categories", labels = [false, "a", 2] }
    """
    match value:
        case str():
            return toml_text(value)
        case bool():
            return str(value).lower()
        case Mapping():
            fields = [f"{toml_key(str(name))} = {toml_value(value[name])}" for name in value]
            return f"{{ {', '.join(fields)} }}"
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case _:
            return repr(value)
