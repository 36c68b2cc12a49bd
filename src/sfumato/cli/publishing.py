"""What the commands that ask one question about one file have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from sfumato.answers.codec import from_plain
from sfumato.answers.question import AnyQuestion, Question
from sfumato.answers.registry import answer_of, tag_of
from sfumato.answers.release import Release
from sfumato.cli.options import opened, parse_axes
from sfumato.cli.output import scanning, show_releases, talk
from sfumato.domain import Domain
from sfumato.errors import DataError, SfumatoError, UsageError
from sfumato.privacy.measures import CentralMeasure, measure_of
from sfumato.privacy.unit import Neighbours, Unit

Q = TypeVar("Q", bound=AnyQuestion)
R = TypeVar("R", bound=Release)


def made(kind: type[Q], fields: Mapping[str, object]) -> Q:
    """A question of these fields, checked as the same fields of a plan are.

    Raises
    ------
    UsageError
        If one of them does not fit.
    """
    try:
        question: Q = from_plain({"type": tag_of(kind)} | dict(fields), kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SfumatoError):
            raise error.__cause__ from None
        remedy = "Correct that option; --help lists all"
        raise UsageError(f"asking a {kind.__name__}", str(error), remedy) from None
    return question


class Publishing(msgspec.Struct, frozen=True):
    """What a command is told that asks one question about one file; see ``cli.options``."""

    file: Path | None
    axes: tuple[str, ...]
    person: str | None
    rows_per_person: int
    neighbours: Neighbours
    data_version: str | None
    account: str
    budget: str | None
    epsilon: str | None
    delta: str
    rho: str | None
    ledger: Path
    fresh: bool
    out: Path | None
    plot: Path | None
    as_json: bool

    def domain(self) -> Domain:
        """The public axes that --axis declares."""
        return Domain(parse_axes(self.axes))

    def unit(self) -> Unit:
        """What one person can change."""
        return Unit(self.rows_per_person, self.neighbours, self.person)


def publish(told: Publishing, domain: Domain, question: Question[R]) -> R:
    """Ask one question about one file, and show the answer."""
    from sfumato.data import source
    from sfumato.ledger import written
    from sfumato.publishing.publisher import Publisher

    if told.plot is not None and answer_of(type(question)).plot is Release.plot:
        asked = f"--plot of a {type(question).__name__}"
        raise UsageError(asked, "its answer has no picture", "Leave --plot out")
    src = source(
        told.file,
        domain,
        person=told.person,
        rows_per_person=told.rows_per_person,
        neighbours=told.neighbours,
        version=told.data_version,
    )
    total = _total(told.budget, told.rho is not None)
    # An account is bound to its person column for good, so a slip in a name is found before it is opened.
    src.require([question.needs(src.domain).lattice])
    with (
        Publisher(src, ledger=opened(told.ledger), account=told.account, budget=total) as publisher,
        scanning() as progress,
    ):
        answer = publisher.release(
            question,
            epsilon=told.epsilon,
            delta=told.delta,
            rho=told.rho,
            fresh=told.fresh,
            progress=progress,
        )
        state = publisher.account
    paid = "Nothing was spent: this is the stored answer. " if answer.replayed else ""
    charged = f"{paid}Remaining: {written(state.rule, state.remaining)}."
    show_releases([answer], as_json=told.as_json, out=told.out, charged=charged)
    if told.plot is not None:
        save_plot(answer, told.plot)
        talk(f"Plot: {told.plot}")
    return answer


def _total(budget: str | None, gaussian: bool) -> CentralMeasure | None:
    """Read --budget in the measure of the release."""
    if budget is None:
        return None
    if gaussian:
        return measure_of("--budget", rho=budget)
    epsilon, comma, delta = budget.partition(",")
    return measure_of("--budget", epsilon=epsilon, delta=delta if comma else 0)


def save_plot(answer: Release, path: Path) -> None:
    """Draw a release into a file whose ending names the format."""
    from sfumato.charts import style

    try:
        style.save(style.figure_of(answer.plot()), path)
    except (OSError, ValueError):
        reason = "the file cannot be written"
    else:
        return
    raise DataError(f"drawing to {path}", reason, "Choose a path that can be written")
