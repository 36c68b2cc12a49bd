"""What the commands that ask one question about one file have in common.

The files of answers are all written before anything is printed (``AnswerFiles``).

Whoever reads stdout may leave before the end, as ``head`` does. What was paid for is in the files
by then.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from sfumato.answers import AnyQuestion, Question, Release, answer_of, tag_of
from sfumato.basics import file_name, from_plain, is_folder, made_folder, several
from sfumato.cli.options import DEFAULT_ACCOUNT, opened_to_charge
from sfumato.cli.output import FrameOf, print_messages, scanning, show_releases
from sfumato.cli.parsing import parse_axes, parse_where
from sfumato.cli.paths import SourcePath, require_apart
from sfumato.data import Source, source
from sfumato.data.options import NOTHING_STATED, StatedOptions
from sfumato.domain import Axis, Condition, Domain, conditions_of
from sfumato.errors import DataError, SfumatoError, UsageError
from sfumato.ledger import written
from sfumato.privacy import (
    Neighbours,
    Unit,
    limits_of,
    measure_of,
    stated_total,
    unit_within,
)
from sfumato.publishing.publisher import CommandPublisher, Publisher

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.reports.page import Item


# --- files of answers -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Forms:
    """How an answer is printed, and how it is written; a command may have forms of its own.

    Attributes
    ----------
    frame : callable
        Makes the table that is printed, one row for each number.
    to_csv : callable
        Writes the CSV file.
    write_others : callable
        Writes files of another kind, and returns what to say of them.
    """

    frame: FrameOf = lambda release: release.to_frame()
    to_csv: Callable[[Release, Path], object] = lambda release, path: release.to_csv(path)
    write_others: Callable[[Release], list[str]] = lambda release: []


class AnswerFiles(msgspec.Struct, frozen=True):
    """The options ``--out``, ``--csv`` and ``--excel``: see ``cli.options.files_options``."""

    out: Path | None
    csv: Path | None
    excel: Path | None

    def require(
        self, questions: Sequence[AnyQuestion], source: str | os.PathLike[str] | None
    ) -> None:
        """Refuse what could not be written of the answers: before they are paid for.

        Parameters
        ----------
        questions : sequence of questions
        source : path or None
            What is read.

        Raises
        ------
        UsageError
            If one file is named for several answers, or a file that is read, or one that would be
            read next time; an answer has no table, or xlsxwriter is not installed.
        DataError
            If a directory or a pattern that is to be read has no files.
        """
        for option, path, ending in (("--csv", self.csv, ".csv"), ("--excel", self.excel, ".xlsx")):
            if path is None:
                continue
            if source is not None:
                require_apart(option, path, ending, source)
            if len(questions) > 1 and not is_folder(path):
                raise UsageError(
                    f"{option} {path}",
                    f"a file holds one answer, and the plan has {len(questions)}",
                    f"Name a folder, as in {option} {path.stem}, and each gets a file in it",
                )
            for question in questions:
                if answer_of(type(question)).to_frame is Release.to_frame:
                    raise UsageError(
                        f"{option} of a {type(question).__name__}",
                        "its answer has no table",
                        f"Leave {option} out",
                    )
        if self.excel is not None and importlib.util.find_spec("xlsxwriter") is None:
            raise UsageError(
                "--excel",
                "writing Excel needs xlsxwriter, which is not installed",
                "Run: pip install 'sfumato[excel]'",
            )

    def write(self, releases: Sequence[Release], forms: Forms) -> list[str]:
        """Write the files that were asked for; return what to say of them.

        Raises
        ------
        DataError
            If a file cannot be written.
        """
        said = []
        if self.out is not None:
            made_folder(self.out)
            for number, release in enumerate(releases, 1):
                release.save(self.out / _numbered(number, release, ".json"))
            saved = several(len(releases), "release")
            said.append(
                f"Saved {saved} in {self.out}; a page of all that is there: sfumato report "
                f"{self.out}/*.json"
            )
        if self.csv is not None:
            _write_each(releases, self.csv, ".csv", forms.to_csv, families_are_folders=True)
            said.append(f"CSV: {self.csv}")
        if self.excel is not None:
            _write_each(releases, self.excel, ".xlsx", lambda release, path: release.to_excel(path))
            said.append(f"Excel: {self.excel}")
        return said


def _write_each(
    releases: Sequence[Release],
    path: Path,
    ending: str,
    write: Callable[[Release, Path], object],
    *,
    families_are_folders: bool = False,
) -> None:
    """Write the only answer to a file, or each answer to a file in a folder.

    ``families_are_folders``: a family of tables writes a file for each of its tables to a folder.
    """
    if not is_folder(path) or (families_are_folders and len(releases) == 1 and releases[0].members):
        write(releases[0], path)
        return
    made_folder(path)
    for number, release in enumerate(releases, 1):
        is_family = families_are_folders and bool(release.members)
        write(release, path / _numbered(number, release, "" if is_family else ending))


def _numbered(number: int, release: Release, ending: str) -> str:
    return f"{number:02d}-{file_name(release.title)}{ending}"


def page_of(items: Sequence[Item], page: Path | None, title: str | None = None) -> list[str]:
    """Write the page of ``--report``, if it is asked for; return what to say of it."""
    if page is None:
        return []
    from sfumato.reports.page import report

    return [f"Report: {report(items, page, title)}"]


@contextmanager
def after_payment() -> Iterator[None]:
    """Files of answers are written here: an error in it says that what was paid for is kept."""
    try:
        yield
    except SfumatoError as error:
        error.add_note(
            "The charge stands, and the answer is stored in the ledger. The same command, with "
            "--stored in place of --fresh, writes and prints it again, and costs nothing."
        )
        raise


# --- publishing -----------------------------------------------------------------------------------

Q = TypeVar("Q", bound=AnyQuestion)
R = TypeVar("R", bound=Release)


def question_of(kind: type[Q], fields: Mapping[str, object]) -> Q:
    """Make a question of these fields, checked as the same fields of a plan are.

    Raises
    ------
    UsageError
        If one of them does not fit.
    """
    try:
        question: Q = from_plain({"type": tag_of(kind)} | dict(fields), kind)
    except msgspec.ValidationError as error:
        # msgspec wraps what the question itself raised, which is the better sentence.
        if isinstance(error.__cause__, SfumatoError):
            raise error.__cause__ from None
        raise UsageError(
            f"asking a {kind.__name__}", str(error), "Correct that option; --help-all lists all"
        ) from None
    return question


class TableSettings(msgspec.Struct, frozen=True):
    """The options about the table that is read, and about whom its rows belong to."""

    file: SourcePath | None
    written: StatedOptions = NOTHING_STATED
    axes: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    person: tuple[str, ...] = ()
    person_called: str | None = None
    rows_per_person: int | None = None
    rows_per_cell: int | None = None
    cells_per_person: int | None = None
    norm_per_person: int | None = None
    neighbours: Neighbours = "add-remove"
    data_version: str | None = None

    def domain(self) -> Domain:
        """The public axes that --axis declares."""
        return Domain(parse_axes(self.axes))

    def subject(self, domain: Domain, kind: type[Axis] | None = None) -> tuple[str, ...]:
        """The axes of a kind that the question is about: those without a condition, if any."""
        conditional = self.conditions(domain) or {}
        fitting = tuple(domain if kind is None else domain.of_kind(kind))
        return tuple(name for name in fitting if name not in conditional) or fitting

    def left_out_by_conditions(self, refusal: str) -> str:
        """Which axis that a refusal names is not in the question because of --where; else ""."""
        if not self.where:
            return ""
        domain = self.domain()
        subject = self.subject(domain)
        left_out = [name for name in domain if name not in subject and repr(name) in refusal]
        if not left_out:
            return ""
        (name, *_) = left_out
        return (
            f"--where {name}=... takes {name} out of the question. To count by {name} as well, ask "
            "in a plan, whose [source.where] leaves it in."
        )

    def conditions(self, domain: Domain) -> dict[str, object] | None:
        """The conditions on rows that --where states."""
        return parse_where(self.where, domain) if self.where else None

    def unit(self) -> Unit:
        """What one person can change."""
        conditions: tuple[Condition, ...] = ()
        if self.where:
            domain = self.domain()
            conditions = conditions_of(self.conditions(domain), domain)
        limits = limits_of(self.rows_per_cell, self.cells_per_person, self.norm_per_person)
        return unit_within(
            self.rows_per_person,
            self.neighbours,
            self.person or None,
            limits,
            conditions,
            self.person_called,
        )

    def source(self, domain: Domain) -> Source:
        """FILE, bounded for each person."""
        return source(
            self.file,
            domain,
            person=self.person or None,
            rows_per_person=self.rows_per_person,
            neighbours=self.neighbours,
            rows_per_cell=self.rows_per_cell,
            cells_per_person=self.cells_per_person,
            norm_per_person=self.norm_per_person,
            version=self.data_version,
            where=self.conditions(domain),
            person_called=self.person_called,
            **msgspec.structs.asdict(self.written),
        )


class PaidSettings(msgspec.Struct, frozen=True):
    """The options about the cost of an answer, who pays it, and its words for people."""

    account: str
    budget: str | None
    epsilon: str | None
    delta: str
    rho: str | None
    ledger: str | Path
    heading: str | None
    measured_in: str | None
    label_name: tuple[str, ...]

    def require_cost(self) -> None:
        """Refuse a command without a cost, or with two, in the words of its options."""
        measure_of(
            "the cost of a release",
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            prefix="--",
        )

    def captions(self) -> dict[str, object]:
        """The question's words for people, as its fields."""
        names = {}
        for text in self.label_name:
            label, _, name = text.partition("=")
            if not label or not name:
                raise UsageError(
                    f"--label-name {text}",
                    "it names no label, or gives it no name",
                    "Write --label-name WN=Southwest",
                )
            names[label] = name
        given = {"heading": self.heading, "measured_in": self.measured_in, "label_names": names}
        return {field: words for field, words in given.items() if words}


class PublishSettings(msgspec.Struct, frozen=True):
    """The options of a command that asks one question about one file: see ``cli.options``."""

    table: TableSettings
    paid: PaidSettings
    files: AnswerFiles
    fresh: bool
    stored: bool
    plot: Path | None
    as_json: bool


def publish(
    settings: PublishSettings,
    domain: Domain,
    question: Question[R],
    forms: Forms | None = None,
) -> R:
    """Ask one question about one file, write the files that were asked for, and show the answer.

    ``forms`` are those of the command, if it has forms of its own.
    """
    forms = forms or Forms()
    question = msgspec.structs.replace(question, **settings.paid.captions())
    if settings.plot is not None and answer_of(type(question)).plot is Release.plot:
        raise UsageError(
            f"--plot of a {type(question).__name__}",
            "its answer has no picture",
            "Leave --plot out",
        )
    settings.files.require([question], settings.table.file)
    settings.paid.require_cost()
    costs = settings.paid
    budget = None
    if costs.budget is not None:
        budget = stated_total(costs.budget, "--budget", in_rho=costs.rho is not None)
    publisher = CommandPublisher(
        settings.table.source(domain),
        ledger=opened_to_charge(costs.ledger),
        account=costs.account,
        budget=budget,
    )
    with publisher, scanning() as progress:
        answer = publisher.release(
            question,
            epsilon=costs.epsilon,
            delta=costs.delta,
            rho=costs.rho,
            fresh=settings.fresh,
            stored=settings.stored,
            progress=progress,
        )
        charged = f"{remaining_of(publisher)}."
    with after_payment():
        said = settings.files.write([answer], forms)
        said += picture_of(answer.plot, settings.plot) + forms.write_others(answer)
    if answer.replayed:
        charged = f"Nothing was spent: this is the stored answer{day_of(answer)}. {charged}"
    if costs.account == DEFAULT_ACCOUNT:
        charged += (
            " Every command without --account spends from it. For a table about other persons, "
            "open another: --account NAME."
        )
    show_releases([answer], as_json=settings.as_json, charged=charged, frame_of=forms.frame)
    print_messages(*said)
    return answer


def day_of(answer: Release) -> str:
    """The day of an answer that was asked for as it is stored, as in " of 2026-11-27"; else ""."""
    receipt = answer.receipt
    return f" of {receipt.as_of}" if receipt is not None and receipt.as_of else ""


def remaining_of(publisher: Publisher) -> str:
    """What remains for whoever publishes, and of whose budget."""
    account = publisher.account
    most = "at most " if account.by_curves else ""
    left = written(account.rule, publisher.ledger.left(account.name))
    of_all = written(account.rule, account.remaining)
    if left == of_all:
        one_more = " for one more answer" if account.by_curves else ""
        return f"Remaining in account {account.name!r}{one_more}: {most}{left}"
    whole = f"for all its spenders: {most}{of_all}"
    return f"Remaining for you in account {account.name!r}: {most}{left} ({whole})"


def picture_of(draw: Callable[[], Axes], path: Path | None) -> list[str]:
    """Draw the picture of ``--plot``, if it is asked for; return what to say of it.

    The ending of the file's name sets the format.
    """
    if path is None:
        return []
    from sfumato.charts import style

    try:
        style.save(style.figure_of(draw()), path)
    except (OSError, ValueError):
        # The error is raised below, outside this block, so that it carries no frame of the drawing.
        obstacle = "the file cannot be written"
    else:
        return [f"Plot: {path}"]
    raise DataError(f"drawing to {path}", obstacle, "Choose a path that can be written")
