"""Plans written as text: the TOML that ``plan_file`` reads.

``written_plan`` writes a whole plan. ``joined_tables`` makes a plan of lines, which may be comments
or be left to fill in: a plan to begin with is no plan yet.

Texts and plain values are written so that any reader of TOML reads them back as they were. JSON
will not do: it writes characters such as emoji as pairs of surrogates, which TOML forbids, and
leaves DEL as it is, which TOML forbids, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from sfumato.basics import to_bytes
from sfumato.errors import UsageError, printable, shown
from sfumato.publishing.plan_file import WISHES, PlanFile

BARE = re.compile(r"[A-Za-z0-9_-]+")


# --- whole plans ----------------------------------------------------------------------------------


def written_plan(spec: PlanFile) -> str:
    """Write a plan as ``read_plan`` reads it.

    Raises
    ------
    UsageError
        If it holds what no plan in a file can say, such as a list in which an entry is missing.
    """
    release = _fields(spec.release)
    questions = [_fields(question) for question in spec.questions]
    for name, field in WISHES.items():
        wishes = release.get(field)
        # TOML has no word for an entry of which nothing is asked, so the others stand each in the
        # table of its question.
        if isinstance(wishes, list) and None in wishes:
            del release[field]
            _give_wishes(questions, name, wishes)
    tables: dict[str, dict[str, object]] = {
        "source": _fields(spec.source),
        "domain": {name: _fields(axis) for name, axis in spec.domain.items()},
        "budget": _fields(spec.budget),
        "release": release,
    }
    if spec.publication is not None:
        tables["publication"] = _fields(spec.publication)
    return joined_tables(
        {name: field_lines(fields) for name, fields in tables.items()},
        [field_lines(question) for question in questions],
    )


def _give_wishes(questions: list[dict[str, object]], name: str, wishes: list[object]) -> None:
    """Put each wish into the table of its question."""
    for question, wish in zip(questions, wishes, strict=True):
        if wish is None:
            continue
        # Its kind may have a field of that name.
        if name in question:
            raise UsageError(
                "writing a plan",
                f"a question states {name} of its own, and others have none",
                f"State {name} for all, or for none",
            )
        question[name] = wish


def joined_tables(tables: Mapping[str, Iterable[str]], questions: Iterable[Iterable[str]]) -> str:
    """Join the lines of tables and of questions to the text of a plan."""
    headed = [(f"[{name}]", lines) for name, lines in tables.items()]
    headed += [("[[questions]]", lines) for lines in questions]
    return "\n\n".join("\n".join([head, *lines]) for head, lines in headed) + "\n"


def field_lines(fields: Mapping[str, object]) -> list[str]:
    """Write each field of a table on a line of its own."""
    return [f"{toml_key(name)} = {toml_value(value)}" for name, value in fields.items()]


def _fields(table: msgspec.Struct) -> dict[str, object]:
    """Return as plain values what a table says beyond what it says without a word."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(table)}
    plain: dict[str, object] = msgspec.json.decode(to_bytes(table))
    return {
        name: value
        for name, value in plain.items()
        if name not in defaults or getattr(table, name) != defaults[name]
    }


# --- TOML -----------------------------------------------------------------------------------------


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
            # A field that says nothing is left out: TOML has no word for it.
            stated = {str(name): part for name, part in value.items() if part is not None}
            return f"{{ {', '.join(field_lines(stated))} }}"
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case None:
            raise UsageError(
                "writing a plan",
                "an entry of a list says nothing, and TOML has no word for it",
                "State each entry, or leave the list out",
            )
        case _:
            return repr(value)
