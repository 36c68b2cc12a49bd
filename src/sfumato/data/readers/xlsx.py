"""The parts of an .xlsx file, streamed: the sheets, the texts, the number formats and the cells.

The reader is the standard library's (zipfile and expat). Whatever one cell holds, the next is read:
what a cell means is for ``excel`` to say, so no value can stop the reading, as it can in
libraries that read a sheet whole. Only the form of the file is refused: a part that is not there,
that is no XML, or that declares a document type, so no entity is ever expanded.
"""

from __future__ import annotations

import contextlib
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar
from xml.parsers import expat

from sfumato.errors import DataError

T = TypeVar("T")

# So many columns has a sheet of Excel; cells that claim to lie behind them are left out.
MAX_COLUMNS = 2**14

_CHUNK = 2**14
_LETTERS = {letter: place for place, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1)}

_DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    expat.ExpatError,
    # Of zipfile: a part that is not there, that is encrypted, or packed in another way.
    EOFError,
    KeyError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


class RawCell(NamedTuple):
    """A cell as it is written: its type, the place of its number format, and its text."""

    kind: str
    style: str
    text: str


class Row(NamedTuple):
    """A row of a sheet: its number, from 1, and its cells by the place of their column, from 0."""

    number: int
    cells: dict[int, RawCell]


class Element(NamedTuple):
    """The beginning of an element, with the element around it. Names are without prefixes."""

    parent: str
    name: str
    attributes: dict[str, str]


def damaged(name: str) -> DataError:
    """Say that a file is not of the form of Excel, and nothing of what is in it."""
    return DataError(
        name,
        "it is not an .xlsx file, or it is damaged",
        "Open it in Excel and save it again as .xlsx, or give a CSV file a name ending in .csv",
    )


class Parts:
    """The parts of one file.

    Raises
    ------
    DataError
        Here and in all methods, if the file is not of the form of Excel.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._open = contextlib.ExitStack()
        archive = None
        with contextlib.suppress(*_DAMAGES):
            archive = self._open.enter_context(zipfile.ZipFile(path))
        if archive is None:
            raise damaged(name)
        self._archive = archive
        self._paths = {_folded(path_): path_ for path_ in archive.namelist()}
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._open)
            self._workbook = self._find_workbook()
            self._related = self._relations()
            # The form is as it should be: the file stays open.
            self._open = stack.pop_all()

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # With the parts that are read half.
        self._open.close()

    def sheets(self) -> dict[str, str]:
        """Give the names of the sheets that hold cells, each with the path of its part."""
        paths = {
            relation["id"]: relation["path"]
            for relation in self._related
            if relation["kind"] == "worksheet"
        }
        listed = [element for element in self._workbook_elements() if element.name == "sheet"]
        ids = [(sheet.attributes.get("name", ""), sheet.attributes.get("id")) for sheet in listed]
        return {name: paths[key] for name, key in ids if key in paths}

    def counts_from_1904(self) -> bool:
        """Tell whether days are counted from 1904 on."""
        return any(
            element.attributes.get("date1904", "0") in ("1", "true", "on")
            for element in self._workbook_elements()
            if element.name == "workbookPr"
        )

    def styles(self) -> list[Element]:
        """Give the elements of the styles, among them the number formats."""
        path = self._path_of("styles")
        return [] if path is None else list(self._stream(path, _Elements()))

    def texts(self) -> Iterator[str]:
        """Read the texts that cells share, one after another."""
        path = self._path_of("sharedStrings")
        return iter(()) if path is None else self._stream(path, _Texts())

    def rows(self, path: str) -> Iterator[Row]:
        """Read the rows of the sheet at a path, one after another."""
        return self._stream(path, _Rows())

    # --- where the parts are ---

    def _find_workbook(self) -> str:
        if "_rels/.rels" in self._paths:
            for relation in self._stream("_rels/.rels", _Elements()):
                if relation.attributes.get("Type", "").endswith("/officeDocument"):
                    return _folded(relation.attributes.get("Target", "")).lstrip("/")
        return "xl/workbook.xml"

    def _workbook_elements(self) -> Iterator[Element]:
        return self._stream(self._workbook, _Elements())

    def _relations(self) -> list[dict[str, str]]:
        """Return what the workbook refers to: the kind, the id and the path of each part."""
        folder, file = posixpath.split(self._workbook)
        relations = []
        for relation in self._stream(posixpath.join(folder, f"_rels/{file}.rels"), _Elements()):
            if relation.name == "Relationship":
                path = posixpath.join("/", folder, _folded(relation.attributes.get("Target", "")))
                relations.append(
                    {
                        "kind": relation.attributes.get("Type", "").rpartition("/")[2],
                        "id": relation.attributes.get("Id", ""),
                        "path": posixpath.normpath(path).lstrip("/"),
                    }
                )
        return relations

    def _path_of(self, kind: str) -> str | None:
        paths = [relation["path"] for relation in self._related if relation["kind"] == kind]
        return paths[0] if paths and paths[0] in self._paths else None

    # --- how they are read ---

    def _stream(self, path: str, taking: _Taking[T]) -> Iterator[T]:
        """Read a part in pieces, and give what each piece completes."""
        try:
            file = self._open.enter_context(self._archive.open(self._paths[path]))
        except _DAMAGES:
            file = None
        if file is None:
            raise damaged(self.name)
        parser = taking.parser()
        is_last = False
        while not (is_last or taking.is_done):
            try:
                piece = file.read(_CHUNK)
                is_last = not piece
                parser.Parse(piece, is_last)
            except _DAMAGES:
                break
            yield from taking.taken()
        else:
            return
        raise damaged(self.name)


def _folded(path: str) -> str:
    """Return a path as it is compared: without regard to case, as the format says."""
    return path.replace("\\", "/").lower()


# --- the elements that matter ---------------------------------------------------------------------


class _Taking(Generic[T]):
    """Takes what matters of the elements of one part."""

    def __init__(self) -> None:
        self.is_done = False
        self._found: list[T] = []

    def parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.text
        parser.StartDoctypeDeclHandler = self.doctype
        return parser

    def taken(self) -> list[T]:
        """Return what is complete since the last call."""
        complete = self._found
        self._found = []
        return complete

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the beginning of an element."""

    def end(self, tag: str) -> None:
        """Take the end of an element."""

    def text(self, text: str) -> None:
        """Take text."""

    def doctype(self, *declared: object) -> None:
        """Refuse the declaration of a document type, which no program for sheets writes."""
        raise ValueError


class _Elements(_Taking[Element]):
    def __init__(self) -> None:
        super().__init__()
        self._around = [""]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        own = {_local(key): value for key, value in attributes.items()}
        self._found.append(Element(self._around[-1], name, own))
        self._around.append(name)

    def end(self, tag: str) -> None:
        self._around.pop()


class _Texts(_Taking[str]):
    """Takes the texts that cells share, without how they are pronounced."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[str] = []
        self._in_text = False
        self._in_sound = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        if name == "si":
            self._pieces = []
        elif name == "rPh":
            self._in_sound = True
        self._in_text = name == "t" and not self._in_sound

    def end(self, tag: str) -> None:
        name = _local(tag)
        self._in_text = False
        if name == "si":
            self._found.append("".join(self._pieces))
        elif name == "rPh":
            self._in_sound = False

    def text(self, text: str) -> None:
        if self._in_text:
            self._pieces.append(text)


class _Rows(_Taking[Row]):
    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._cells: dict[int, RawCell] = {}
        self._place = -1
        self._kind = self._style = ""
        self._pieces: list[str] = []
        self._is_within = self._in_text = self._in_sound = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        if not self._is_within:
            self._is_within = name == "sheetData"
        elif name == "c":
            self._place = _place(attributes.get("r"), self._place + 1)
            self._kind = attributes.get("t", "n")
            self._style = attributes.get("s", "")
            self._pieces = []
        elif name == "row":
            self._number = _number(attributes.get("r"), self._number + 1)
            self._cells = {}
            self._place = -1
        elif name == "rPh":
            self._in_sound = True
        else:
            wanted = "t" if self._kind == "inlineStr" else "v"
            self._in_text = name == wanted and not self._in_sound

    def end(self, tag: str) -> None:
        self._in_text = False
        if not self._is_within:
            return
        name = _local(tag)
        if name == "c":
            text = "".join(self._pieces)
            if text and self._place < MAX_COLUMNS:
                self._cells[self._place] = RawCell(self._kind, self._style, text)
        elif name == "row":
            self._found.append(Row(self._number, self._cells))
        elif name == "rPh":
            self._in_sound = False
        elif name == "sheetData":
            self._is_within = False
            self.is_done = True

    def text(self, text: str) -> None:
        if self._in_text:
            self._pieces.append(text)


def _local(tag: str) -> str:
    return tag.rpartition(":")[2] if ":" in tag else tag


def _place(reference: str | None, following: int) -> int:
    """Find the place of the column of a cell such as AB12; else it follows the cell before."""
    place = 0
    # No column has more than three letters: with a fourth, the place lies behind all of them.
    for letter in (reference or "").rstrip("0123456789")[:4]:
        if letter not in _LETTERS:
            return following
        place = place * 26 + _LETTERS[letter]
    return place - 1 if place else following


def _number(reference: str | None, following: int) -> int:
    text = reference or ""
    is_number = text.isascii() and text.isdigit() and len(text) <= 9
    return int(text) if is_number else following
