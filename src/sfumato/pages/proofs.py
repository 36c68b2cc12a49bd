"""Proofs, receipts and hashes: once for all answers that share them, at the end of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from sfumato.answers.loading import standing
from sfumato.answers.release import Release
from sfumato.pages.headings import heading_of
from sfumato.privacy.measures import common_cost

Lines: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Shared:
    """What several answers have in common.

    Attributes
    ----------
    answers : tuple of (anchor, heading)
    lines : tuple of (name, sentences)
    """

    answers: tuple[tuple[str, str], ...]
    lines: Lines


@dataclass(frozen=True)
class Proofs:
    """The end of the page.

    Attributes
    ----------
    counted : tuple of Shared
        Which rows the numbers are about.
    guarantees, receipts : tuple of Shared
    """

    counted: tuple[Shared, ...]
    guarantees: tuple[Shared, ...]
    receipts: tuple[Shared, ...]


def proofs(releases: Sequence[Release], anchors: Sequence[str]) -> Proofs:
    """What the page says of guarantees and charges, each once.

    Parameters
    ----------
    releases : sequence of Release
    anchors : sequence of str
        Where each of them stands on the page.
    """
    answers = [
        (anchor, heading_of(release)) for anchor, release in zip(anchors, releases, strict=True)
    ]
    return Proofs(
        _by_lines(answers, (_counted(release) for release in releases)),
        _by_lines(answers, _guarantees(releases)),
        _by_lines(answers, (_receipt(release) for release in releases)),
    )


def _by_lines(answers: Sequence[tuple[str, str]], lines: Iterable[Lines]) -> tuple[Shared, ...]:
    """Answers with equal lines together, in the order of the page."""
    found: dict[Lines, list[tuple[str, str]]] = {}
    for answer, each in zip(answers, lines, strict=True):
        found.setdefault(each, []).append(answer)
    return tuple(Shared(tuple(together), each) for each, together in found.items() if each)


def _counted(release: Release) -> Lines:
    counted = release.guarantee.counted
    return (("", (counted,)),) if counted else ()


def _guarantees(releases: Sequence[Release]) -> list[Lines]:
    """The guarantee of each; answers whose costs differ in their last digits have one."""
    measures = {release.guarantee.measure: None for release in releases}
    found = []
    for release in releases:
        guarantee = release.guarantee
        alike = [other for other in measures if common_cost([guarantee.measure, other])]
        common = common_cost(alike)
        if common is None or not common.is_rounded:
            found.append(_guarantee(str(guarantee)))
            continue
        rounded = str(msgspec.structs.replace(guarantee, measure=common.cost))
        found.append(_guarantee(rounded.replace(str(common.cost), str(common), 1)))
    return found


def _guarantee(text: str) -> Lines:
    """The sentences of ``str(guarantee)``, grouped by their headings.

    Which rows were counted has a place of its own on the page.
    """
    grouped: dict[str, list[str]] = {}
    for line in text.splitlines():
        heading, _, sentence = line.partition(": ")
        if heading == "Counted":
            continue
        grouped.setdefault(heading, []).append(f"{sentence[:1].upper()}{sentence[1:]}")
    return tuple((heading, tuple(sentences)) for heading, sentences in grouped.items())


def _receipt(release: Release) -> Lines:
    receipt = release.receipt
    if receipt is None:
        return (("Receipt", ("None: this answer was not charged to an account.",)),)
    rows = receipt.lines()
    if release.replayed:
        rows.append(("Answer", "The stored one, given before; nothing was spent for it again"))
    if origin := standing(release):
        rows.append(("Origin", origin))
    # Which answer of a plan it is, is said beside its name.
    charged = receipt.charged
    return tuple((name, (charged if name == "Charged" else text,)) for name, text in rows)
