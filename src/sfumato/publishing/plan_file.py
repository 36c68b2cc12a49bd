"""A plan as a TOML file: questions, together with their data, domain, account and cost."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import msgspec

from sfumato.answers import registry
from sfumato.answers.accuracy import Within
from sfumato.answers.codec import from_plain
from sfumato.answers.question import AnyQuestion
from sfumato.basics.numbers import Exactly, positive, probability
from sfumato.data import Source, source
from sfumato.data.addresses import address_of, in_folder, of_plan, required_of_plan
from sfumato.data.options import StatedOptions
from sfumato.data.reader import Reader
from sfumato.domain.conditions import conditions_of
from sfumato.domain.domain import Axis, Domain
from sfumato.domain.times import iso_text
from sfumato.errors import DataError, SfumatoError, UsageError, missing_file
from sfumato.privacy.limits import limits_of
from sfumato.privacy.measures import CentralMeasure, asked_cost, measure_of
from sfumato.privacy.unit import Neighbours, Unit, unit_within
from sfumato.publishing.plan import Plan
from sfumato.publishing.plan_choice import PlanCost, plan_cost
from sfumato.publishing.plan_refusals import not_toml, refused, refused_table, require_plan_name
from sfumato.publishing.publication import Publication

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

    def unit(self, domain: Domain) -> Unit:
        """What one person can change."""
        where = () if self.where is None else conditions_of(self.where, domain)
        limits = limits_of(self.rows_per_cell, self.cells_per_person, self.norm_per_person)
        return unit_within(self.rows_per_person, self.neighbours, self.person, limits, where)

    def opened(self, domain: Domain, table: Reader | None = None) -> Source:
        """The table, bounded for each person; ``table`` reads it in place of the path."""
        return source(
            of_plan(self.path, os.environ) if table is None else table,
            domain,
            self.person,
            self.rows_per_person,
            self.neighbours,
            self.name,
            self.version,
            rows_per_cell=self.rows_per_cell,
            cells_per_person=self.cells_per_person,
            norm_per_person=self.norm_per_person,
            where=self.where,
            **self.arguments(),
        )


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
        half_width = float(positive(self.half_width, "half_width"))
        confidence = float(probability(self.confidence, "confidence"))
        return Within(half_width, confidence, self.simultaneous)


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

    def arguments(self) -> dict[str, Exactly | None]:
        """The cost as keyword arguments of ``Publisher.release``."""
        return {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}

    def cost(self) -> CentralMeasure:
        """The cost of the whole plan."""
        return asked_cost(epsilon=self.epsilon, delta=self.delta, rho=self.rho)

    def stated(self, plan: Plan) -> PlanCost:
        """The same, or that the least cost is asked for."""
        return plan_cost(plan, epsilon=self.epsilon, delta=self.delta, rho=self.rho)


def _accuracy_of(given: object) -> object:
    """How accurate answers must be, as ``sf.Plan`` takes it."""
    if isinstance(given, tuple):
        return [_accuracy_of(each) for each in given]
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
    asked = f"the plan {Path(path)}"
    plain = _read(Path(path), asked)
    # Questions from outside the package may be named in a plan.
    registry.discover()
    plain = _with_wishes_together(plain, asked)
    try:
        spec = from_plain(plain, PlanFile)
    except msgspec.ValidationError as error:
        fault = str(error)
        # A question that a package declares, and that could not be imported, says why itself.
        if isinstance(error.__cause__, SfumatoError) and "question" in error.__cause__.asked:
            raise error.__cause__ from None
    else:
        _require_numbers(spec, asked)
        if not Path(spec.source.path).is_absolute():
            spec = _in_folder(spec, Path(path).parent)
        # Of the path as it is opened: a relative one may become an address.
        required_of_plan(spec.source.path, f"{asked}, [source], path")
        return spec
    raise refused(plain, TABLES, asked, fault)


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
    asked = f"the facts {Path(path)}"
    plain = _read(Path(path), asked)
    if not isinstance(plain, dict) or "publication" not in plain:
        remedy = 'Write [publication], and below it fields such as data_curators = ["..."]'
        raise UsageError(asked, "it has no table [publication]", remedy)
    return publication_of(plain["publication"], f"{asked}, [publication]")


def publication_of(plain: object, asked: str) -> Publication:
    """The facts of a publication from a table of plain values.

    Raises
    ------
    UsageError
        If a field is unknown or wrong; the message names it.
    """
    try:
        return from_plain(plain, Publication)
    except msgspec.ValidationError as error:
        fault = error
    raise refused_table(plain, Publication, asked, fault)


def _read(path: Path, asked: str) -> object:
    """The tables of a TOML file as dicts and lists."""
    require_plan_name(path, asked)
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_PLAN + 1)
    except FileNotFoundError:
        raise DataError(asked, missing_file(path), "Check the path") from None
    except OSError as error:
        obstacle = error.strerror or "the file cannot be read"
        raise DataError(asked, obstacle, "Name a TOML file that may be read") from None
    return _toml(data, asked)


TABLES: dict[str, type[msgspec.Struct]] = {
    "source": SourceSpec,
    "budget": BudgetSpec,
    "release": CostSpec,
    "publication": Publication,
}


WISHES = {"accuracy": "accuracy", "weight": "weights"}
"""What a question's own table may say of its share: the field, and that of ``[release]``."""


def _with_wishes_together(plain: object, asked: str) -> object:
    """Move what questions say of their shares to ``[release]``, one entry for each question.

    Questions themselves have no such fields: an answer would otherwise depend on them.
    """
    if not isinstance(plain, dict) or not isinstance(plain.get("questions"), list):
        return plain
    questions = [dict(one) if isinstance(one, dict) else one for one in plain["questions"]]
    release = plain.get("release")
    found = {}
    for name, field in WISHES.items():
        if not any(_is_a_wish(name, one) for one in questions):
            continue
        if isinstance(release, dict) and field in release:
            obstacle = f"[release] states {field} already"
            where = f"{asked}, {name} of a question"
            raise UsageError(where, obstacle, "Leave one of them out")
        found[field] = [one.pop(name) if _is_a_wish(name, one) else None for one in questions]
    if not found or not isinstance(release, dict):
        return plain
    return plain | {"questions": questions, "release": release | found}


def _is_a_wish(name: str, question: object) -> bool:
    """Whether a question's table has this field, and its kind has none of that name."""
    if not isinstance(question, dict) or name not in question:
        return False
    kinds = {registry.tag_of(kind): kind for kind in registry.questions()}
    kind = kinds.get(str(question.get("type")))
    own = () if kind is None else kind.__struct_fields__
    return name not in own


def _require_numbers(spec: PlanFile, asked: str) -> None:
    """Refuse a plan without a cost, and costs and totals that are no such numbers."""
    readers: dict[str, Callable[[], object]] = {
        "budget": lambda: (spec.budget.total, spec.budget.most),
        "release": lambda: spec.release.stated(spec.plan()),
    }
    for table, read in readers.items():
        try:
            read()
        except UsageError as error:
            where = f"{asked}, [{table}], {error.asked}"
            raise type(error)(where, error.obstacle, error.remedy) from None
    if not spec.domain:
        obstacle = "it declares no axis"
        remedy = "Take away the # before a column, and state its public bounds or labels"
        raise UsageError(f"{asked}, [domain]", obstacle, remedy)


def _toml(data: bytes, asked: str) -> object:
    """Parse a plan, which may come from a stranger, in work that its length bounds.

    Python's parser of TOML does not bound it: its time grows with the square of the dots in a name,
    and it recurses into brackets.
    """
    if len(data) > LONGEST_PLAN:
        raise UsageError(
            asked,
            f"it is longer than {LONGEST_PLAN:,} bytes",
            "Divide its questions among several plans",
        )
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
        if _DOTTED.search(text):
            raise UsageError(
                asked,
                f"a name in it has more than {MOST_DOTS} dots",
                f"Write names as {EXAMPLE} does",
            )
        return _isoformat(tomllib.loads(text))
    except SfumatoError:
        raise
    except UnicodeDecodeError:
        obstacle = "it is not text in UTF-8"
    except tomllib.TOMLDecodeError as error:
        raise not_toml(text, error, asked) from None
    # Python itself refuses integers of more than 4,300 digits.
    except ValueError:
        obstacle = "a number in it is too long to be read"
    except RecursionError:
        obstacle = "brackets in it are nested too deeply"
    raise UsageError(asked, obstacle, "Correct the plan there")


def _in_folder(spec: PlanFile, folder: Path) -> PlanFile:
    given = spec.source.path
    path = str(folder / given) if address_of(given) is None else in_folder(given, folder)
    source = msgspec.structs.replace(spec.source, path=path)
    return msgspec.structs.replace(spec, source=source)


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
