"""Read releases from files and from the ledger, and say what is known of where they come from.

What a file holds never decides what is imported. The origin of a release is known by its signature.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sfumato.answers import registry
from sfumato.answers.question import Question
from sfumato.answers.release import Release, marked, with_receipt
from sfumato.basics import UNREADABLE, from_bytes, to_bytes, valid
from sfumato.domain import LabelAxis, Lattice
from sfumato.errors import DataError, UsageError, explained, missing_file, not_saved, printable

# What ``--json`` prints beside a release; version 0.1 printed the first only.
FOR_PEOPLE = frozenset({"table", "accuracy"})


class _Tagged(msgspec.Struct):
    """The one field of a release that says what the others are."""

    type: str


@explained
def load(path: str | os.PathLike[str]) -> Release:
    """Read a release from a JSON file that ``release.save`` wrote.

    Anyone may have edited the file: ``sfumato verify`` compares it with the ledger or checks its
    signature. Reading never imports code.

    Parameters
    ----------
    path : path
        The JSON file.

    Returns
    -------
    Release
        Equal to the one that was saved; its ``loaded`` is true.

    Raises
    ------
    DataError
        If the file is missing, or holds no release of a kind that is known here.
    UsageError
        If ``path`` is not a path.

    >>> import tempfile
    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.array([[1.0], [3.0]]), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> release = sf.Publisher(src, budget="1").release(sf.Histogram("x", bins=4), epsilon="1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = sf.load(release.save(f"{folder}/release.json"))
    >>> loaded == release, loaded.loaded
    (True, True)
    """
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        raise UsageError(
            f"loading {type(path).__name__}",
            "it is not a path",
            "Name a file that release.save wrote",
        )
    request = f"loading {Path(path)}"
    remedy = "Name a file that release.save wrote"
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        reason = missing_file(path)
        remedy = "Check the path"
    except OSError as error:
        reason = error.strerror or "the file cannot be read"
    else:
        try:
            release = _release(data)
            _require_distinct(release)
            return marked(release, loaded=True)
        except UNREADABLE:
            reason = "the file does not hold a release of this version"
            if (kind := unknown_kind(data)) is not None:
                reason = f"it holds a {printable(kind)!r}, which no imported package has registered"
                remedy = "Import the package that defines it, then load it again"
    raise DataError(request, reason, remedy)


def stored_releases(
    data: bytes, questions: Sequence[Question[Release]] | None = None
) -> list[Release]:
    """Decode the answers to a plan, as the ledger stores them.

    Parameters
    ----------
    data : bytes
    questions : sequence of Question, or None
        What they answer, where it is known: no other kind of answer is then imported.

    Raises
    ------
    what ``UNREADABLE`` lists
        If another version wrote them, or a package that is not imported here.
    """
    if questions:
        try:
            return from_bytes(data, registry.answers_type(questions))
        except UNREADABLE:
            pass  # a question may give an answer of another kind than it declares
    return from_bytes(data, registry.list_of(registry.release_type()))


def unknown_kind(data: bytes) -> str | None:
    """The kind of release that a file names, if no registered one has that name."""
    try:
        tag = msgspec.json.decode(data, type=_Tagged).type
    except UNREADABLE:
        return None
    known = {registry.tag_of(kind) for kind in registry.releases()}
    return None if tag in known else tag


def _require_distinct(release: Release) -> None:
    """Refuse axes of one name, and an axis with a label twice: no domain has them."""
    for cells in msgspec.structs.astuple(release):
        if isinstance(cells, Lattice) and not _is_distinct(cells):
            raise not_saved("a release", "two of its axes, or two labels of one axis, are the same")


def _is_distinct(cells: Lattice) -> bool:
    axes = [axis for axis in cells.axes if isinstance(axis, LabelAxis)]
    # Python takes 1 for True.
    typed = [
        [(type(label), label) for label in named]
        for axis in axes
        for named in (axis.labels, axis.listed)
    ]
    return all(len(set(named)) == len(named) for named in (cells.names, *typed))


def _release(data: bytes) -> Release:
    """Decode a release; an unknown field is refused, since it would be lost in silence.

    What ``--json`` prints is a release and, beside it, what follows from the release for people:
    that is not read.
    """
    try:
        return from_bytes(data, registry.release_type())
    except msgspec.ValidationError:
        fields = msgspec.json.decode(data)
        if not isinstance(fields, dict) or not fields.keys() & FOR_PEOPLE:
            raise
    alone = {name: field for name, field in fields.items() if name not in FOR_PEOPLE}
    return from_bytes(msgspec.json.encode(alone), registry.release_type())


def signed_part(release: Release) -> bytes:
    """The bytes that a signature covers: the release with its signature left out."""
    # A signature cannot cover itself.
    return to_bytes(with_receipt(release, signature=""))


def standing(release: Release) -> str:
    """What a page may say of a release's origin: "" for one that was just published."""
    receipt = release.receipt
    if not release.loaded:
        return ""
    if receipt is None or not receipt.signature:
        return "not verified: read from a file, and not signed"
    if not valid(receipt.signer, receipt.signature, signed_part(release)):
        return "not verified: its signature does not match"
    return f"signed with the key {receipt.signer}: compare it with the custodian's"
