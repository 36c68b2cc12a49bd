"""What all parts of a page share: headings of answers, the styles of pictures, what a study shows.

An answer is called by the heading it was given, or else by its question in words. The look of the
parts of all pictures of a page is said once (``shared``).

Pictures repeat the same few styles on every tick and line: on a page of many answers that is most
of its bytes.

A ``Study`` is what is shown of a decision, or of clusters of reports: a picture, figures and
sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from markupsafe import Markup

from sfumato.answers import Panels, Release
from sfumato.basics import plain
from sfumato.charts import worker
from sfumato.questions.histogram import HistogramRelease
from sfumato.questions.partition.release import Partition

LONGEST = 200


def heading_of(release: Release) -> str:
    """The heading of an answer, in words and with units of measure.

    A heading that the question was given is taken as it is. Counts are named by what was counted
    and along which axes; other answers say that in their titles. The conditions on rows follow,
    since answers about all rows and about some of them may stand side by side.
    """
    if release.heading != release.title:
        return plain(release.heading, LONGEST)
    named = release.for_people()
    conditions = named.guarantee.unit.conditions
    match named:
        case HistogramRelease():
            axes = named.lattice.names
            what = "persons" if named.question.count == "persons" else "rows"
        case Partition():
            axes = named.lattice.names
            what = "rows"
        case _:
            return plain(f"{release.title}{conditions}", LONGEST)
    return plain(f"Number of {what} by {' and '.join(axes)}{conditions}", LONGEST)


STYLED = re.compile(r'(<(?:path|text|use)\b[^<>]*?) style="([^"]*)"')


def shared(page: str) -> str:
    """The same page, with a class in place of each style that parts of pictures share.

    >>> looks = shared("<style></style>" + '<path d="M0 0" style="fill: none"/>' * 3)
    >>> looks.startswith('<style>.a0{fill: none}</style><path d="M0 0" class="a0"/>')
    True
    """
    uses = Counter(match[2] for match in STYLED.finditer(page))
    # A class of its own pays for a style from the third use on.
    common = [style for style, count in uses.items() if count >= 3]
    names = {style: f"a{i}" for i, style in enumerate(common)}

    def named(match: re.Match[str]) -> str:
        name = names.get(match[2])
        return match[0] if name is None else f'{match[1]} class="{name}"'

    rules = "".join(f".{name}{{{style}}}\n" for style, name in names.items()).strip()
    head, end, body = page.partition("</style>")
    return head + rules + end + STYLED.sub(named, body)


Lines: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Study:
    """What the template shows of a choice, a window, a recommended limit or clusters of reports.

    Attributes
    ----------
    anchor, title : str
    charts : tuple of Markup
        The picture for a page, and the one for a phone.
    figures : tuple of (figure, meaning)
    sentences : tuple of (sentence, items)
        Items are shown as a list under their sentence.
    notes : tuple of str
        What has to be said where the result is quoted.
    columns, rows : tuples of text
        A table; empty where there is none.
    warning : str
        Why the section is not private; empty where it is.
    """

    anchor: str
    title: str
    charts: tuple[Markup, ...]
    figures: tuple[tuple[str, str], ...]
    sentences: Lines
    notes: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    warning: str = ""


def drawn(plot: Callable[[], Panels], title: str, text: str, anchor: str) -> tuple[Markup, ...]:
    """The picture for a page, and the same for a phone. ``text`` describes it in words."""
    return tuple(map(Markup, worker.pictures(plot, title, text, anchor)))
