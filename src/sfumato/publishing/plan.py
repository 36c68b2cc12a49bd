"""Several questions fixed before any answer is seen, and the TOML file that states them together with their data."""

from __future__ import annotations

import datetime as dt
import os
import re
import tomllib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import msgspec

from sfumato.answers import registry
from sfumato.answers.codec import from_plain
from sfumato.answers.question import AnyQuestion, Question
from sfumato.cube import DENSE_LIMIT
from sfumato.domain import Categories, Domain, Interval, Keys, Lattice
from sfumato.errors import DataError, SfumatoError, UsageError
from sfumato.limits import require_plan
from sfumato.numbers import Exactly, GivenNumbers, fraction, positive
from sfumato.privacy.allocation import share
from sfumato.privacy.measures import CentralMeasure, measure_of
from sfumato.privacy.unit import Neighbours


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several questions fixed before any answer is seen: one scan, one charge.

    Parameters
    ----------
    questions : sequence of questions
    shares : sequence of numbers or None
        How the cost is divided; None: equally.

    Raises
    ------
    UsageError
        If there is no question, or shares do not fit.

    >>> from sfumato.histogram import Histogram
    >>> from sfumato.privacy.measures import PureDP
    >>> plan = Plan([Histogram("age"), Histogram("hour")], shares=[1, 3])
    >>> [str(cost) for cost in plan.costs(PureDP("1"))]
    ['epsilon = 0.25', 'epsilon = 0.75']
    """

    questions: Sequence[AnyQuestion]
    shares: GivenNumbers | None = None

    def __post_init__(self) -> None:
        questions: object = self.questions
        if not isinstance(questions, Question | Sequence) or isinstance(questions, str):
            raise UsageError(
                f"a plan of {type(questions).__name__}",
                "it is neither a question nor a list of them",
                'Write sf.Histogram("age")',
            )
        msgspec.structs.force_setattr(
            self, "questions", (questions,) if isinstance(questions, Question) else tuple(questions)
        )
        for question in self.questions:
            if not isinstance(question, Question):
                raise UsageError(
                    f"a plan with a {type(question).__name__}",
                    "it is not a question",
                    'Write sf.Histogram("age") or another question',
                )
        if not self.questions:
            raise UsageError("a plan", "it holds no question", "Add at least one")
        if self.shares is not None:
            if not isinstance(self.shares, Sequence) or isinstance(self.shares, str):
                raise UsageError(
                    f"shares of type {type(self.shares).__name__}",
                    "shares are a list of numbers",
                    "Write shares=[2, 1]",
                )
            msgspec.structs.force_setattr(
                self, "shares", tuple(positive(part, "a share") for part in self.shares)
            )
            if len(self.shares) != len(self.questions):
                asked = f"{len(self.shares)} shares for {len(self.questions)} questions"
                raise UsageError(
                    asked, "each question needs one share", "Give as many shares as questions"
                )

    def costs(self, cost: CentralMeasure) -> list[CentralMeasure]:
        """What each question may spend; together, exactly the cost."""
        return share(cost, self.weights)

    @property
    def weights(self) -> list[Fraction]:
        """Of each question, to which its part of the cost is proportional."""
        if self.shares is None:
            return [Fraction(1)] * len(self.questions)
        return [fraction(part, "a share") for part in self.shares]

    def needs(self, domain: Domain) -> list[Lattice]:
        """The lattice of each question, once it is known that all can be counted, answered and stored: before the charge."""
        needs = [question.needs(domain) for question in self.questions]
        numbers = sum(each.numbers for each in needs)
        lattices = [each.lattice for each in needs]
        counted = sum(lattice.size for lattice in set(lattices) if lattice.size <= DENSE_LIMIT)
        require_plan(f"a plan of {len(self.questions)} questions", numbers, counted)
        return lattices

    @property
    def title(self) -> str:
        """The questions in a few words."""
        return "; ".join(question.title for question in self.questions)


def as_plan(question: AnyQuestion | Plan | Sequence[AnyQuestion]) -> Plan:
    """Read what a publisher was asked: a question, a list of them, or a plan."""
    if isinstance(question, Plan):
        return question
    return Plan((question,) if isinstance(question, Question) else question)


LONGEST_PLAN = 2**22  # bytes: room for a hundred thousand labels
MOST_DOTS = 16
_DOTTED = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){17}"""
)

# --- the file ---------------------------------------------------------------------------------------------------------


class SourceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[source]``: where the rows are, and who stands behind them. A relative path starts at the plan's folder."""

    path: str
    person: str | None = None
    rows_per_person: int = 1
    neighbours: Neighbours = "add-remove"
    name: str | None = None
    version: str | int | None = None


class BudgetSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[budget]``: the account, and its total as epsilon, epsilon and delta, or rho; no total: the account exists.

    ``ceiling`` is what all accounts of the named data set may spend together: an epsilon, beside the same delta, or a rho.
    """

    account: str
    epsilon: str | int | float | None = None
    delta: str | int | float = 0
    rho: str | int | float | None = None
    ceiling: str | int | float | None = None

    @property
    def total(self) -> CentralMeasure | None:
        """The account's total."""
        if self.epsilon is None and self.rho is None:
            return None
        return measure_of("[budget]", epsilon=self.epsilon, delta=self.delta, rho=self.rho)

    @property
    def most(self) -> CentralMeasure | None:
        """The ceiling of the data set, in the measure of the account."""
        if self.ceiling is None:
            return None
        if self.rho is not None:
            return measure_of("a ceiling", rho=self.ceiling)
        return measure_of("a ceiling", epsilon=self.ceiling, delta=self.delta)


class CostSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[release]``: what this plan may spend, and how its questions share it."""

    epsilon: str | int | float | None = None
    delta: str | int | float = 0
    rho: str | int | float | None = None
    shares: tuple[Fraction, ...] | None = None
    key: str | None = None

    def arguments(self) -> dict[str, Exactly | None]:
        """The keywords of ``Publisher.release``."""
        return {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole release as a file: source, domain, budget, cost and questions."""

    source: SourceSpec
    domain: dict[str, Interval | Categories | Keys]
    budget: BudgetSpec
    release: CostSpec
    questions: tuple[AnyQuestion, ...]

    def plan(self) -> Plan:
        """Its questions and shares."""
        return Plan(self.questions, self.release.shares)


def read_plan(path: str | os.PathLike[str]) -> PlanFile:
    """Read a plan from TOML.

    Raises
    ------
    DataError
        If the file is missing or is not TOML.
    UsageError
        If a field is unknown, missing or wrong; the message names the place.
    """
    asked = f"the plan {Path(path)}"
    try:
        with Path(path).open("rb") as file:
            data = file.read(LONGEST_PLAN + 1)
    except OSError as error:
        raise DataError(
            asked,
            error.strerror or "the file cannot be read",
            "Name a TOML file; examples/flights.toml is one",
        ) from None
    plain = _toml(data, asked)
    registry.discover()
    try:
        spec = from_plain(plain, PlanFile)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SfumatoError):
            raise error.__cause__ from None
        raise UsageError(
            asked, str(error), "Correct that field; examples/flights.toml shows each"
        ) from None
    return spec if Path(spec.source.path).is_absolute() else _at(spec, Path(path).parent)


def _toml(data: bytes, asked: str) -> object:
    """Parse a plan, in work that its length bounds: the parser takes the square of the dots of a name, and recurses into brackets."""
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
                "Write names as examples/flights.toml does",
            )
        return _isoformat(tomllib.loads(text))
    except SfumatoError:
        raise
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        obstacle = f"it is not TOML ({error})"
    except ValueError:  # Python reads integers of at most 4,300 digits
        obstacle = "a number in it is too long to be read"
    except RecursionError:
        obstacle = "brackets in it are nested too deeply"
    raise UsageError(asked, obstacle, "Correct that place")


def _at(spec: PlanFile, folder: Path) -> PlanFile:
    source = msgspec.structs.replace(spec.source, path=str(folder / spec.source.path))
    return msgspec.structs.replace(spec, source=source)


def domain_of(spec: PlanFile) -> Domain:
    """The public axes that a plan declares."""
    return Domain(spec.domain)


def _isoformat(plain: object) -> object:
    """Write TOML's own dates as ISO text, the one form in which a domain holds them."""
    if isinstance(plain, dict):
        return {key: _isoformat(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_isoformat(value) for value in plain]
    return plain.isoformat() if isinstance(plain, dt.date) else plain
