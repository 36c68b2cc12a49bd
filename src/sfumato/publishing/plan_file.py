"""A plan as a TOML file: questions, together with their data, domain, account and cost.

First stand the refusals. They say what is wrong in a plan: in which table, with which field, and
what to write in its place.

A plan is public, so a refusal may quote it. But a file that is no plan at all may hold data: of
text that does not parse, a refusal gives the line's number and never its words.

``written_plan`` writes a whole plan. ``joined_tables`` makes a plan of lines, which may be comments
or be left to fill in: a plan to begin with is no plan yet.

Texts and plain values are written so that any reader of TOML reads them back as they were. JSON
will not do: it writes characters such as emoji as pairs of surrogates, which TOML forbids, and
leaves DEL as it is, which TOML forbids, too.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias, get_args

import msgspec

from sfumato.answers import AnyQuestion, Kind, Within, registry
from sfumato.basics import from_plain, to_bytes
from sfumato.data import Source, addresses, source
from sfumato.data.addresses import of_plan, required_of_plan
from sfumato.data.options import StatedOptions
from sfumato.data.reader import Reader
from sfumato.domain import Axis, Domain, conditions_of, iso_text
from sfumato.errors import (
    DataError,
    SfumatoError,
    UsageError,
    missing_file,
    nearest,
    printable,
    shown,
)
from sfumato.privacy import (
    CentralMeasure,
    Neighbours,
    Unit,
    limits_of,
    measure_of,
    unit_within,
)
from sfumato.publishing.plan import Plan, plan_cost
from sfumato.publishing.verifying import Publication

# --- refusals -------------------------------------------------------------------------------------

AXES: dict[str, type[msgspec.Struct]] = {registry.tag_of(kind): kind for kind in get_args(Axis)}
TO_FILL_IN = "Type sfumato init FILE --out PLAN.toml for a plan to fill in"

# The tables that a plan may leave out.
OPTIONAL = frozenset({"publication"})

# What a question's own table may say of its share: the field, and that of ``[release]``.
WISHES = {"accuracy": "accuracy", "weight": "weights"}

# What TOML calls things, and an example of each, by msgspec's names.
WORDS = {
    "int": ("a whole number", "2"),
    "float": ("a number with a point", "0.5"),
    "str": ("text in quotes", '"..."'),
    "bool": ("true or false", "true"),
    "array": ("a list in square brackets", '["a", "b"]'),
    "object": ("a table in braces", "{ ... }"),
}

_EXPECTED = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_LACKING = re.compile(r"Object missing required field `([^`]*)`")

# What msgspec says of a table that does not fit its struct.
_PLACE = re.compile(r" - at `\$\.(\w+)(?:\[([0-9]+)\])?[^`]*`$")


def _faults(plain: Mapping[str, object], title: str) -> Iterator[UsageError]:
    """Yield all that is wrong in a plan that was parsed, in the order in which to correct it.

    ``title`` says which plan it is, such as "the plan visits.toml".
    """
    known = [*TABLES, "domain", "questions"]
    for name in plain:
        if name not in known:
            yield UsageError(
                f"{title}, [{name}]",
                f"there is no table of that name; {nearest(name, known)}",
                "Correct the name, or remove it",
            )
    for name in known:
        if name not in plain and name not in OPTIONAL:
            line = "[[questions]]" if name == "questions" else f"[{name}]"
            yield UsageError(title, f"it lacks {line}", f"Add it. {TO_FILL_IN}")
    for name, kind in TABLES.items():
        if name in plain:
            yield from _struct_faults(plain[name], kind, f"{title}, [{name}]")
    yield from _axis_faults(plain.get("domain"), title)
    yield from _question_faults(plain.get("questions"), title)


def _axis_faults(domain: object, title: str) -> Iterator[UsageError]:
    if not isinstance(domain, dict):
        yield UsageError(f"{title}, domain", "it is not a table", "Write [domain] above the axes")
        return
    remedy = 'Write type = "interval" for numbers and dates, or "categories" for labels'
    for name, axis in domain.items():
        where = f"{title}, axis {name!r}"
        if isinstance(axis, dict):
            yield from _typed_faults(axis, AXES, where, "type", (remedy, remedy))
        else:
            yield UsageError(
                where,
                "it is not a table in braces",
                f'Write {name} = {{ type = "interval", lower = 0, upper = 100 }}',
            )


def _question_faults(questions: object, title: str) -> Iterator[UsageError]:
    if not isinstance(questions, list):
        yield UsageError(
            f"{title}, [questions]",
            "questions are a list of tables",
            "Write [[questions]], with two brackets",
        )
        return
    remedies = (
        'Write type = "histogram"',
        "Correct the type, or install the package that defines it",
    )
    for number, question in enumerate(questions, 1):
        where = f"{title}, question {number}"
        yield from _typed_faults(
            question if isinstance(question, dict) else {},
            _question_kinds(),
            where,
            "question of type",
            remedies,
        )


def _question_kinds() -> dict[str, type[AnyQuestion]]:
    return {registry.tag_of(kind): kind for kind in registry.questions()}


def _typed_faults(
    table: Mapping[str, object],
    kinds: Mapping[str, type[msgspec.Struct]],
    where: str,
    noun: str,
    remedies: tuple[str, str],
) -> Iterator[UsageError]:
    """Yield what is wrong with a table whose ``type`` names its kind.

    ``remedies`` say what to do if there is no type, and if it is unknown.
    """
    tag = table.get("type")
    if tag is None:
        yield UsageError(where, "it lacks a type", remedies[0])
    elif not isinstance(tag, str) or tag not in kinds:
        yield UsageError(
            where, f"there is no {noun} {shown(tag)}; {nearest(tag, kinds)}", remedies[1]
        )
    else:
        yield from _struct_faults(table, kinds[tag], where)


def _struct_faults(table: object, kind: type[msgspec.Struct], where: str) -> Iterator[UsageError]:
    """Yield what is wrong with a table of one kind: a field, or all of them together."""
    if not isinstance(table, dict):
        yield UsageError(where, "it is not a table", f"Write fields below it. {TO_FILL_IN}")
        return
    try:
        from_plain(table, kind)
    except msgspec.ValidationError as error:
        cause = error.__cause__
        if isinstance(cause, UsageError):
            yield type(cause)(f"{where}, {cause.asked}", cause.obstacle, cause.remedy)
        elif not isinstance(cause, SfumatoError):
            yield _field_fault(str(error), kind, where)


def _field_fault(fault: str, kind: type[msgspec.Struct], where: str) -> UsageError:
    """Say in our words what msgspec says of a table: of its fields, or of what stands in one."""
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    if unknown := _UNKNOWN.fullmatch(fault):
        return UsageError(
            where,
            f"it has no field {shown(unknown[1])}; {nearest(unknown[1], types)}",
            "Correct the name, or remove the field",
        )
    if lacking := _LACKING.fullmatch(fault):
        return UsageError(
            where,
            f"it lacks {lacking[1]}",
            f"Write {lacking[1]} = {_example(types[lacking[1]])}",
        )
    place = _PLACE.search(fault)
    if place is None:
        return UsageError(where, fault, "Correct it there")
    name, entry = place.groups()
    obstacle = fault[: place.start()]
    if misread := _EXPECTED.match(fault):
        which = "it" if entry is None else f"entry {int(entry) + 1} of it"
        obstacle = f"{which} is {_in_words(misread[2])}, and must be {_in_words(misread[1])}"
    return UsageError(f"{where}, {name}", obstacle, f"Write {name} = {_example(types[name])}")


def _in_words(kinds: str) -> str:
    words = [WORDS.get(kind, (kind,))[0] for kind in kinds.split(" | ") if kind != "null"]
    return ", or ".join(dict.fromkeys(words))


def _example(kind: object) -> str:
    try:
        from_plain(msgspec.UNSET, kind)  # type: ignore[arg-type]
    except msgspec.ValidationError as error:
        if expected := _EXPECTED.match(str(error)):
            return WORDS.get(expected[1].split(" | ")[0], ("", "..."))[1]
    return "..."


# --- text that is no TOML ---------------------------------------------------------------------

# What a line may look like that does not parse: pattern, obstacle, remedy.
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


def _not_toml(text: str, error: ValueError, title: str) -> UsageError:
    """Make the error of a text that is not TOML: the line's number, and what it looks like."""
    if text.lstrip().startswith("{"):
        return UsageError(
            title,
            "it holds JSON, and a plan is TOML",
            f"Write [source] and path = ... on lines of their own. {TO_FILL_IN}",
        )
    place = re.search(r"at line ([0-9]+)", str(error))
    if place is None:
        return UsageError(title, f"it is not TOML ({error})", "Close what is open, and end it")
    number = int(place[1])
    lines = text.split("\n")
    line = lines[number - 1] if number <= len(lines) else ""
    # Words within quotes tell nothing of what stands between them.
    bare = re.sub(r'"[^"\\]*"|\'[^\']*\'', '""', line)
    for pattern, obstacle, remedy in _HINTS:
        if re.match(pattern, bare):
            return UsageError(title, f"line {number} {obstacle}", remedy)
    why = re.sub(r" \(at line [0-9]+, column ([0-9]+)\)", r", at column \1", str(error))
    return UsageError(title, f"line {number} is not TOML ({why})", f"Correct line {number}")


# --- the file -------------------------------------------------------------------------------------

LONGEST_PLAN = 2**22  # bytes: room for a hundred thousand labels

# The parser of TOML takes time in proportion to the square of the dots in a name.
MOST_DOTS = 16
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*\.[ \t]*){{{MOST_DOTS + 1}}}")

EXAMPLE = "examples/flights.toml"


class SourceSpec(StatedOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[source]``: where the rows are, how they are written, and whom each row belongs to.

    A relative path starts at the folder of the plan. The other fields are parameters of
    ``sf.source``; conditions stand in ``[source.where]``, labels and ranges alike as lists.
    """

    path: str
    person: str | tuple[str, ...] | None = None
    rows_per_person: int | None = None
    neighbours: Neighbours = "add-remove"
    name: str | None = None
    version: str | int | None = None
    rows_per_cell: int | None = None
    cells_per_person: int | None = None
    norm_per_person: int | None = None
    where: dict[str, str | int | list[str | int | float | bool]] | None = None
    person_called: str | None = None

    def unit(self, domain: Domain) -> Unit:
        """What one person can change."""
        where = () if self.where is None else conditions_of(self.where, domain)
        limits = limits_of(self.rows_per_cell, self.cells_per_person, self.norm_per_person)
        return unit_within(
            self.rows_per_person, self.neighbours, self.person, limits, where, self.person_called
        )

    def opened(self, domain: Domain, table: Reader | None = None) -> Source:
        """The table, bounded for each person; ``table`` reads it in place of the path."""
        stated = msgspec.structs.asdict(self)
        path = stated.pop("path")
        return source(of_plan(path, os.environ) if table is None else table, domain, **stated)


class BudgetSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[budget]``: the account, and its total as epsilon, epsilon and delta, or rho.

    Without a total, the account must exist. ``ceiling`` is what all accounts of the named data set
    may spend together, in the account's measure: an epsilon (with the same delta) or a rho.
    """

    account: str
    epsilon: str | int | float | None = None
    delta: str | int | float = 0
    rho: str | int | float | None = None
    ceiling: str | int | float | None = None

    @property
    def total(self) -> CentralMeasure | None:
        """The account's total; None where none is stated."""
        if self.epsilon is None and self.rho is None:
            return None
        return measure_of("[budget]", epsilon=self.epsilon, delta=self.delta, rho=self.rho)

    @property
    def most(self) -> CentralMeasure | None:
        """The ceiling of the data set, in the measure of the account; None where none is stated."""
        if self.ceiling is None:
            return None
        if self.rho is not None:
            return measure_of("a ceiling", rho=self.ceiling)
        return measure_of("a ceiling", epsilon=self.ceiling, delta=self.delta)


class AccuracySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``accuracy = { half_width = 20, ... }``: the fields of ``sf.Within``."""

    half_width: str | int | float
    confidence: str | int | float = 0.95
    simultaneous: bool = False

    def within(self) -> Within:
        """How accurate an answer must be."""
        # Within reads its numbers itself, whatever they are written as.
        return Within(self.half_width, self.confidence, self.simultaneous)  # type: ignore[arg-type]


GivenAccuracy: TypeAlias = str | int | float | AccuracySpec


class CostSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[release]``: what this plan may spend, and how its questions share it.

    The fields from ``accuracy`` on are those of ``sf.Plan``. A question may state its own
    ``accuracy`` and ``weight`` in its table instead.
    """

    epsilon: str | int | float | None = None
    delta: str | int | float = 0
    rho: str | int | float | None = None
    shares: tuple[Fraction, ...] | None = None
    key: str | None = None
    accuracy: GivenAccuracy | tuple[GivenAccuracy | None, ...] | None = None
    weights: tuple[str | int | float | None, ...] | None = None
    minimise: str | None = None
    noise: str | None = None
    rows: int | None = None
    adds_up: bool | None = None

    def plan(self, questions: Sequence[AnyQuestion]) -> Plan:
        """The questions, and how they share the cost."""
        given = {
            "accuracy": _accuracy_of(self.accuracy),
            "weights": self.weights,
            "minimise": self.minimise,
            "noise": self.noise,
            "rows": self.rows,
            "adds_up": self.adds_up,
        }
        # Plan itself says what is wrong with a word or a number.
        return Plan(questions, self.shares, **given)  # type: ignore[arg-type]

    def stated(self, plan: Plan) -> CentralMeasure | Kind:
        """The cost of the whole plan; a kind: the least of it that is accurate enough."""
        return plan_cost(plan, epsilon=self.epsilon, delta=self.delta, rho=self.rho)


def _accuracy_of(given: object) -> object:
    """Return how accurate answers must be, as ``sf.Plan`` takes it."""
    if isinstance(given, tuple):
        return [_accuracy_of(accuracy) for accuracy in given]
    return given.within() if isinstance(given, AccuracySpec) else given


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole release as a file: source, domain, budget, cost and questions.

    An unknown field is refused: it may be a misspelt limit on persons.
    """

    source: SourceSpec
    domain: dict[str, Axis]
    budget: BudgetSpec
    release: CostSpec
    questions: tuple[AnyQuestion, ...]
    publication: Publication | None = None

    def plan(self) -> Plan:
        """The questions, and how they share the cost."""
        return self.release.plan(self.questions)


def read_plan(path: str | os.PathLike[str]) -> PlanFile:
    """Read a plan from a TOML file.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    DataError
        If the file cannot be read.
    UsageError
        If it is not TOML, or a field is unknown, missing or wrong; the message names the place.
    """
    title = f"the plan {Path(path)}"
    plain = _read(Path(path), title)
    # Questions from outside the package may be named in a plan.
    registry.discover()
    plain = _with_wishes_together(plain, title)
    try:
        spec = from_plain(plain, PlanFile)
    except msgspec.ValidationError as error:
        fault = str(error)
        # A question that a package declares, and that could not be imported, says why itself.
        if isinstance(error.__cause__, SfumatoError) and "question" in error.__cause__.asked:
            raise error.__cause__ from None
    else:
        _require_numbers(spec, title)
        given = spec.source.path
        if not Path(given).is_absolute():
            # A path, or the file in an address, starts at the folder of the plan.
            address = addresses.read(given)
            folder = Path(path).parent
            placed = str(folder / given) if address is None else address.in_folder(folder)
            stated = msgspec.structs.replace(spec.source, path=placed)
            spec = msgspec.structs.replace(spec, source=stated)
        # Of the path as it is opened: a relative one may become an address.
        required_of_plan(spec.source.path, f"{title}, [source], path")
        return spec
    raise next(_faults(plain, title), UsageError(title, fault, TO_FILL_IN))


def read_publication(path: str | os.PathLike[str]) -> Publication:
    """Read the table ``[publication]`` of a TOML file: of a plan, or of a file of its own.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    DataError
        If the file cannot be read.
    UsageError
        If it is not TOML, has no such table, or a field is unknown or wrong.
    """
    title = f"the facts {Path(path)}"
    plain = _read(Path(path), title)
    if "publication" not in plain:
        raise UsageError(
            title,
            "it has no table [publication]",
            'Write [publication], and below it fields such as data_curators = ["..."]',
        )
    return publication_of(plain["publication"], f"{title}, [publication]")


def publication_of(plain: object, title: str) -> Publication:
    """Read the facts of a publication from a table of plain values.

    Raises
    ------
    UsageError
        If a field is unknown or wrong; the message names it.
    """
    try:
        return from_plain(plain, Publication)
    except msgspec.ValidationError as error:
        fault = str(error)
    raise next(
        _struct_faults(plain, Publication, title), UsageError(title, fault, "Correct it there")
    )


def _read(path: Path, title: str) -> dict[str, object]:
    # A table given in place of a plan: its text might be quoted otherwise.
    if path.suffix.lower() in {".csv", ".gz", ".parquet", ".pq", ".xlsx", ".xls", ".tsv"}:
        raise UsageError(
            title,
            "it is a table by its name, and a plan is a TOML file",
            f"Type sfumato init {path} --out {path.stem}.toml, and name {path.stem}.toml here",
        )
    if path.is_dir():
        raise UsageError(title, "it is a directory", "Name the plan in it, a file ending in .toml")
    try:
        with path.open("rb") as file:
            encoded = file.read(LONGEST_PLAN + 1)
    except FileNotFoundError:
        raise DataError(title, missing_file(path), "Check the path") from None
    except OSError as error:
        raise DataError(
            title, error.strerror or "the file cannot be read", "Name a TOML file that may be read"
        ) from None
    return _toml(encoded, title)


TABLES: dict[str, type[msgspec.Struct]] = {
    "source": SourceSpec,
    "budget": BudgetSpec,
    "release": CostSpec,
    "publication": Publication,
}


def _with_wishes_together(plain: dict[str, object], title: str) -> dict[str, object]:
    """Move what questions say of their shares to ``[release]``, one entry for each question.

    Questions themselves have no such fields: an answer would otherwise depend on them.
    """
    questions = plain.get("questions")
    release = plain.get("release")
    if not isinstance(questions, list) or not isinstance(release, dict):
        return plain
    wishes: dict[str, list[object]] = {}
    for name, field in WISHES.items():
        entries = [_taken_wish(name, question) for question in questions]
        if all(entry is None for entry in entries):
            continue
        if field in release:
            raise UsageError(
                f"{title}, {name} of a question",
                f"[release] states {field} already",
                "Leave one of them out",
            )
        wishes[field] = entries
    return plain | {"release": release | wishes}


def _taken_wish(name: str, question: object) -> object:
    """Take this field out of a question's table, unless its kind has one of that name."""
    if not isinstance(question, dict):
        return None
    kind = _question_kinds().get(str(question.get("type")))
    own = () if kind is None else kind.__struct_fields__
    return None if name in own else question.pop(name, None)


def _require_numbers(spec: PlanFile, title: str) -> None:
    """Refuse a plan without a cost, and costs and totals that are no such numbers."""
    readers: dict[str, Callable[[], object]] = {
        "budget": lambda: (spec.budget.total, spec.budget.most),
        "release": lambda: spec.release.stated(spec.plan()),
    }
    for table, read in readers.items():
        try:
            read()
        except UsageError as error:
            where = f"{title}, [{table}], {error.asked}"
            raise type(error)(where, error.obstacle, error.remedy) from None
    if not spec.domain:
        raise UsageError(
            f"{title}, [domain]",
            "it declares no axis",
            "Take away the # before a column, and state its public bounds or labels",
        )


def _toml(encoded: bytes, title: str) -> dict[str, object]:
    """Parse a plan, which may come from a stranger, in work that its length bounds.

    Python's parser of TOML does not bound it: its time grows with the square of the dots in a name,
    and it recurses into brackets.
    """
    if len(encoded) > LONGEST_PLAN:
        raise UsageError(
            title,
            f"it is longer than {LONGEST_PLAN:,} bytes",
            "Divide its questions among several plans",
        )
    try:
        text = encoded.decode("utf-8").replace("\r\n", "\n")
        if _DOTTED.search(text):
            raise UsageError(
                title,
                f"a name in it has more than {MOST_DOTS} dots",
                f"Write names as {EXAMPLE} does",
            )
        return {name: _isoformat(table) for name, table in tomllib.loads(text).items()}
    except SfumatoError:
        raise
    except UnicodeDecodeError:
        obstacle = "it is not text in UTF-8"
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(text, error, title) from None
    # Python itself refuses integers of more than 4,300 digits.
    except ValueError:
        obstacle = "a number in it is too long to be read"
    except RecursionError:
        obstacle = "brackets in it are nested too deeply"
    raise UsageError(title, obstacle, "Correct the plan there")


def domain_of(spec: PlanFile) -> Domain:
    """The public axes that a plan declares."""
    return Domain(spec.domain)


def _isoformat(plain: object) -> object:
    """Write the dates that TOML knows as ISO text, the only form in which a domain holds them."""
    if isinstance(plain, dict):
        return {key: _isoformat(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_isoformat(value) for value in plain]
    return iso_text(plain)


# --- plans as text --------------------------------------------------------------------------------


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


# A key that needs no quotes.
BARE = re.compile(r"[A-Za-z0-9_-]+")


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
