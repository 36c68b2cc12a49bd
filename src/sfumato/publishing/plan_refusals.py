"""Say what is wrong in a plan: in which table, with which field, and what to write in its place.

A plan is public, so a refusal may quote it. But a file that is no plan at all may hold data: of
text that does not parse, a refusal gives the line's number and never its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from sfumato.answers import registry
from sfumato.answers.codec import from_plain
from sfumato.domain.domain import Axis
from sfumato.errors import SfumatoError, UsageError, nearest, shown

AXES: dict[str, type[msgspec.Struct]] = {registry.tag_of(kind): kind for kind in get_args(Axis)}
TO_FILL_IN = "Type sfumato init FILE --out PLAN.toml for a plan to fill in"

OPTIONAL = frozenset({"publication"})
"""The tables that a plan may leave out."""

WORDS = {
    "int": "a whole number",
    "float": "a number with a point",
    "str": "text in quotes",
    "bool": "true or false",
    "array": "a list in square brackets",
    "object": "a table in braces",
}
"""What TOML calls things, by msgspec's names."""

EXAMPLES = {
    "int": "2",
    "float": "0.5",
    "str": '"..."',
    "bool": "true",
    "array": '["a", "b"]',
    "object": "{ ... }",
}

_EXPECTED = re.compile(r"Expected `([^`]*)`, got `([^`]*)`(?: - at `\$\[([0-9]+)\])?")


def refused(
    plain: object, tables: Mapping[str, type[msgspec.Struct]], asked: str, fault: str
) -> UsageError:
    """The error of a plan that was parsed and does not fit.

    Parameters
    ----------
    plain : object
        The plan as dicts and lists.
    tables : dict of type
        The tables of fields, by name.
    asked : str
        What was asked, such as "the plan visits.toml".
    fault : str
        What the decoder says, for a fault that is not found here.
    """
    for found in _faults(plain, tables, asked):
        return found
    return UsageError(asked, fault, TO_FILL_IN)


def refused_table(
    table: object, kind: type[msgspec.Struct], where: str, fault: msgspec.ValidationError
) -> UsageError:
    """The error of one table that was parsed and does not fit; as for ``refused``."""
    for found in _field_faults(table, kind, where):
        return found
    cause = fault.__cause__
    if isinstance(cause, UsageError):
        return type(cause)(f"{where}, {cause.asked}", cause.obstacle, cause.remedy)
    return UsageError(where, str(fault), "Correct it there")


def _faults(
    plain: object, tables: Mapping[str, type[msgspec.Struct]], asked: str
) -> Iterator[UsageError]:
    """All that is wrong, in the order in which to correct it."""
    if not isinstance(plain, dict):
        return
    known = [*tables, "domain", "questions"]
    for name in plain:
        if name not in known:
            obstacle = f"there is no table of that name; {nearest(name, known)}"
            yield UsageError(f"{asked}, [{name}]", obstacle, "Correct the name, or remove it")
    for name in known:
        if name not in plain and name not in OPTIONAL:
            line = "[[questions]]" if name == "questions" else f"[{name}]"
            yield UsageError(asked, f"it lacks {line}", f"Add it. {TO_FILL_IN}")
    for name, kind in tables.items():
        yield from _field_faults(plain.get(name), kind, f"{asked}, [{name}]")
    yield from _axis_faults(plain.get("domain"), asked)
    yield from _question_faults(plain.get("questions"), asked)


def _axis_faults(domain: object, asked: str) -> Iterator[UsageError]:
    if not isinstance(domain, dict):
        yield UsageError(f"{asked}, domain", "it is not a table", "Write [domain] above the axes")
        return
    for name, axis in domain.items():
        where = f"{asked}, axis {name!r}"
        if not isinstance(axis, dict):
            remedy = f'Write {name} = {{ type = "interval", lower = 0, upper = 100 }}'
            yield UsageError(where, "it is not a table in braces", remedy)
            continue
        tag = axis.get("type")
        if not isinstance(tag, str) or tag not in AXES:
            obstacle = "it lacks a type"
            if "type" in axis:
                obstacle = f"there is no type {shown(tag)}; {nearest(tag, AXES)}"
            remedy = 'Write type = "interval" for numbers and dates, or "categories" for labels'
            yield UsageError(where, obstacle, remedy)
            continue
        yield from _struct_faults(axis, AXES[tag], where)


def _question_faults(questions: object, asked: str) -> Iterator[UsageError]:
    if not isinstance(questions, list):
        obstacle = "questions are a list of tables"
        yield UsageError(
            f"{asked}, [questions]", obstacle, "Write [[questions]], with two brackets"
        )
        return
    kinds = {registry.tag_of(kind): kind for kind in registry.questions()}
    for number, question in enumerate(questions, 1):
        where = f"{asked}, question {number}"
        tag = question.get("type") if isinstance(question, dict) else None
        if tag in kinds:
            yield from _struct_faults(question, kinds[tag], where)
        elif not isinstance(tag, str):
            yield UsageError(where, "it lacks a type", 'Write type = "histogram"')
        else:
            obstacle = f"there is no question of type {tag!r}; {nearest(tag, kinds)}"
            remedy = "Correct the type, or install the package that defines it"
            yield UsageError(where, obstacle, remedy)


def _struct_faults(
    table: Mapping[str, object], kind: type[msgspec.Struct], where: str
) -> Iterator[UsageError]:
    """What is wrong with a table that has a type, fields first and then all of them together."""
    yield from _field_faults(table, kind, where)
    try:
        from_plain(table, kind)
    except msgspec.ValidationError as error:
        cause = error.__cause__
        if isinstance(cause, UsageError):
            found = type(cause)(f"{where}, {cause.asked}", cause.obstacle, cause.remedy)
            yield found
        elif not isinstance(cause, SfumatoError):
            yield UsageError(where, str(error), "Correct it there")


def _field_faults(table: object, kind: type[msgspec.Struct], where: str) -> Iterator[UsageError]:
    """Unknown, missing and misread fields of a table."""
    if not isinstance(table, dict):
        if table is not None:
            yield UsageError(where, "it is not a table", f"Write fields below it. {TO_FILL_IN}")
        return
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    for name in table:
        if name not in fields and name != kind.__struct_config__.tag_field:
            obstacle = f"it has no field {shown(name)}; {nearest(name, fields)}"
            yield UsageError(where, obstacle, "Correct the name, or remove the field")
    for name, field in fields.items():
        remedy = f"Write {name} = {_example(field.type)}"
        if field.required and name not in table:
            yield UsageError(where, f"it lacks {name}", remedy)
        misread = _misread(table[name], field.type) if name in table else None
        if misread is not None:
            yield UsageError(f"{where}, {name}", misread, remedy)


def _misread(value: object, kind: object) -> str | None:
    """Say why a value is not read as a field of this type; None if it is."""
    try:
        from_plain(value, kind)  # type: ignore[arg-type]  # a union, too, is what a field declares
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SfumatoError):
            return None  # said better when the whole table is read
        found = _EXPECTED.match(str(error))
        if found is None:
            return str(error)
        expected, got, entry = found.groups()
        which = "it" if entry is None else f"entry {int(entry) + 1} of it"
        return f"{which} is {_in_words(got)}, and must be {_in_words(expected)}"
    return None


def _in_words(kinds: str) -> str:
    words = [WORDS.get(kind, kind) for kind in kinds.split(" | ") if kind != "null"]
    return ", or ".join(dict.fromkeys(words))


def _example(kind: object) -> str:
    """How a value of a type is written."""
    try:
        from_plain(msgspec.UNSET, kind)  # type: ignore[arg-type]
    except msgspec.ValidationError as error:
        found = _EXPECTED.match(str(error))
        if found is not None:
            return EXAMPLES.get(found[1].split(" | ")[0], "...")
    return "..."


# --- text that is no TOML ---------------------------------------------------------------------

_HINTS: Sequence[tuple[str, str, str]] = (
    (r".*\?", "holds a ? that is to be filled in", "Put a public bound or label in its place"),
    (
        r".*=\s*[0-9]+,[0-9]+\s*(?:#.*)?",
        "has a decimal comma",
        "Write the number with a point, such as 0.5",
    ),
    (
        r".*\b[0-9]{4}-(?:[0-9]-[0-9]{1,2}|[0-9]{1,2}-[0-9])\b",
        "has a date without two digits for month and day",
        "Write dates as in 2025-01-31",
    ),
    (
        r"\s*[\w-]+\s*=\s*[A-Za-z/]",
        "has text without quotes",
        'Put text in quotes, as in person = "patient"',
    ),
    (
        r".*\\",
        "has a backslash in double quotes",
        r"Write paths with /, or in single quotes, as in 'C:\data\visits.csv'",
    ),
)
"""What a line may look like that does not parse: pattern, obstacle, remedy."""


def not_toml(text: str, error: ValueError, asked: str) -> UsageError:
    """The error of a text that is not TOML: the line's number, and what the line looks like."""
    if text.lstrip().startswith("{"):
        remedy = f"Write [source] and path = ... on lines of their own. {TO_FILL_IN}"
        return UsageError(asked, "it holds JSON, and a plan is TOML", remedy)
    place = re.search(r"at line ([0-9]+)", str(error))
    if place is None:
        return UsageError(asked, f"it is not TOML ({error})", "Close what is open, and end it")
    number = int(place[1])
    lines = text.split("\n")
    line = lines[number - 1] if number <= len(lines) else ""
    # Words within quotes tell nothing of what stands between them.
    bare = re.sub(r'"[^"\\]*"|\'[^\']*\'', '""', line)
    for pattern, obstacle, remedy in _HINTS:
        if re.match(pattern, bare):
            return UsageError(asked, f"line {number} {obstacle}", remedy)
    why = re.sub(r" \(at line [0-9]+, column ([0-9]+)\)", r", at column \1", str(error))
    return UsageError(asked, f"line {number} is not TOML ({why})", f"Correct line {number}")


def require_plan_name(path: Path, asked: str) -> None:
    """Refuse a table given in place of a plan; its text might be quoted otherwise."""
    if path.suffix.lower() in {".csv", ".gz", ".parquet", ".pq", ".xlsx", ".xls", ".tsv"}:
        remedy = f"Type sfumato init {path} --out {path.stem}.toml, and name {path.stem}.toml here"
        raise UsageError(asked, "it is a table by its name, and a plan is a TOML file", remedy)
    if path.is_dir():
        raise UsageError(asked, "it is a directory", "Name the plan in it, a file ending in .toml")
