"""The files that are written of answers: all of them before anything is printed.

Whoever reads stdout may leave before the end, as ``head`` does. What was paid for is in the files
by then.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sfumato.answers.registry import answer_of
from sfumato.answers.release import Release
from sfumato.basics.files import file_name, is_folder, made_folder
from sfumato.cli.output_paths import require_apart
from sfumato.errors import SfumatoError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.answers.question import AnyQuestion
    from sfumato.reports.page import Item

STORED = (
    "The charge stands, and the answer is stored in the ledger. The same command without --fresh "
    "writes and prints it again, and costs nothing."
)


class Forms:
    """How an answer is printed, and how it is written; a command may have forms of its own."""

    def frame(self, release: Release) -> pa.Table:
        """The table that is printed, one row for each number."""
        return release.to_frame()

    def to_csv(self, release: Release, path: Path) -> None:
        """Write the CSV file."""
        release.to_csv(path)

    def write_others(self, release: Release) -> list[str]:
        """Write files of another kind; return what to say of them."""
        return []


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
        written = (("--csv", self.csv, ".csv"), ("--excel", self.excel, ".xlsx"))
        for option, path, ending in written:
            if path is None:
                continue
            if source is not None:
                require_apart(option, path, ending, source)
            if len(questions) > 1 and not is_folder(path):
                obstacle = f"a file holds one answer, and the plan has {len(questions)}"
                remedy = f"Name a folder, as in {option} {path.stem}, and each gets a file in it"
                raise UsageError(f"{option} {path}", obstacle, remedy)
            for question in questions:
                if answer_of(type(question)).to_frame is Release.to_frame:
                    asked = f"{option} of a {type(question).__name__}"
                    raise UsageError(asked, "its answer has no table", f"Leave {option} out")
        if self.excel is not None and importlib.util.find_spec("xlsxwriter") is None:
            obstacle = "writing Excel needs xlsxwriter, which is not installed"
            raise UsageError("--excel", obstacle, "Run: pip install 'sfumato[excel]'")

    def write(self, releases: Sequence[Release], forms: Forms) -> list[str]:
        """Write the files that were asked for; return what to say of them.

        Raises
        ------
        DataError
            If a file cannot be written.
        """
        said = []
        if self.out is not None:
            save_all(releases, self.out)
            plural = "s" if len(releases) > 1 else ""
            said.append(f"Saved {len(releases)} release{plural} in {self.out}")
        if self.csv is not None:
            _write_each(releases, self.csv, ".csv", forms.to_csv, families_are_folders=True)
            said.append(f"CSV: {self.csv}")
        if self.excel is not None:
            _write_each(releases, self.excel, ".xlsx", lambda one, path: one.to_excel(path))
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


def save_all(releases: Sequence[Release], folder: Path) -> list[Path]:
    """Save releases as numbered JSON files, and return their paths.

    Raises
    ------
    DataError
        If the folder cannot be made, or a file in it cannot be written.
    """
    made_folder(folder)
    return [
        release.save(folder / _numbered(number, release, ".json"))
        for number, release in enumerate(releases, 1)
    ]


def _numbered(number: int, release: Release, ending: str) -> str:
    return f"{number:02d}-{file_name(release.title)}{ending}"


def page_of(items: Sequence[Item], page: Path | None, title: str | None = None) -> list[str]:
    """Write the page of ``--report``, if it is asked for; return what to say of it."""
    if page is None:
        return []
    from sfumato.reports import report

    return [f"Report: {report(items, page, title)}"]


@contextmanager
def paid() -> Iterator[None]:
    """Files of answers are written here: an error in it says that what was paid for is kept."""
    try:
        yield
    except SfumatoError as error:
        error.add_note(STORED)
        raise
