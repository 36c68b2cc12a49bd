"""What the commands that ask one question about one file have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from sfumato.answers.codec import from_plain
from sfumato.answers.question import AnyQuestion
from sfumato.answers.registry import tag_of
from sfumato.answers.release import Release
from sfumato.cli.options import opened
from sfumato.cli.output import scanning, show_releases, talk
from sfumato.domain import Domain
from sfumato.errors import DataError, SfumatoError, UsageError
from sfumato.privacy.measures import CentralMeasure, measure_of

Q = TypeVar("Q", bound=AnyQuestion)


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
        raise UsageError(f"asking a {kind.__name__}", str(error), "Correct that option; --help lists all") from None
    return question


def publish(
    file: Path,
    domain: Domain,
    question: AnyQuestion,
    *,
    person: str | None,
    rows_per_person: int,
    neighbours: str,
    data_version: str | None,
    account: str,
    budget: str | None,
    epsilon: str | None,
    delta: str,
    rho: str | None,
    ledger: Path,
    fresh: bool,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> Release:
    """Ask one question about one file, and show the answer."""
    from sfumato.data import source
    from sfumato.ledger import written
    from sfumato.publisher import Publisher

    src = source(
        file,
        domain,
        person=person,
        rows_per_person=rows_per_person,
        neighbours=neighbours,  # type: ignore[arg-type]
        version=data_version,
    )
    total = _total(budget, rho is not None)
    # An account is bound to its person column for good, so a slip in a name is found before it is opened.
    src.require([question.needs(src.domain).lattice])
    with (
        Publisher(src, ledger=opened(ledger), account=account, budget=total) as publisher,
        scanning() as progress,
    ):
        answer = publisher.release(question, epsilon=epsilon, delta=delta, rho=rho, fresh=fresh, progress=progress)
        state = publisher.account
    paid = "Nothing was spent: this is the stored answer. " if answer.replayed else ""
    show_releases([answer], as_json=as_json, out=out, charged=f"{paid}Remaining: {written(state.rule, state.remaining)}.")
    if plot is not None:
        save_plot(answer, plot)
        talk(f"Plot: {plot}")
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
        style.save(answer.plot().figure, path)
    except (OSError, ValueError):
        reason = "the file cannot be written"
    else:
        return
    raise DataError(f"drawing to {path}", reason, "Choose a path that can be written")
