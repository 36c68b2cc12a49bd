"""One page that can be handed to a board: what was asked, the answers with their accuracy, what was promised and spent.

The page is one file. It loads nothing, runs nothing, and is the same to the last byte for the same releases.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias, TypeGuard

import jinja2

from sfumato.answers.release import Release
from sfumato.choosing.windows import Window
from sfumato.errors import UsageError
from sfumato.pages import decisions, sections, spending
from sfumato.pages.decisions import Decision, Finding
from sfumato.risk import Choice, Choices
from sfumato.writing import write_bytes

TITLE, UNRELEASED = "What was released", "Choosing epsilon"
DECISIONS = Choice | Choices | Window
Item: TypeAlias = Release | Decision | Finding


def report(
    items: Item | Iterable[Item], path: str | os.PathLike[str], title: str | None = None
) -> Path:
    """Write one self-contained page about releases, how their epsilon was chosen, and what an audit saw.

    Parameters
    ----------
    items : Release, Choice, Choices, Window, finding of an audit, or several
        As ``Publisher.release``, ``sf.load``, ``sf.choose``, ``sf.window`` and ``sfumato.audit`` give them; lists of them
        may be among them. The page holds what they hold and nothing else. A Choice speaks of its universe: see its caveats.
    path : path
        Of the HTML file. An existing one is replaced.
    title : str or None
        Heading of the page.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    UsageError
        If there is nothing, or something else is among them.
    DataError
        If the file cannot be written.
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(
            f"a report at {type(path).__name__}",
            "it is not a path",
            'Write sf.report([release], "report.html")',
        )
    return write_bytes(path, render(_flat(items), title).encode())


def render(items: Sequence[Item], title: str | None = None) -> str:
    """Make the page as text: the same text for the same items."""
    releases = [item for item in items if isinstance(item, Release)]
    chosen = [item for item in items if isinstance(item, DECISIONS)]
    shown = [sections.section(release, f"answer-{i}") for i, release in enumerate(releases, 1)]
    dates = sorted(
        {release.receipt.time[:10] for release in releases if release.receipt is not None}
    )
    return _template().render(
        title=title or (TITLE if releases else UNRELEASED),
        dates=dates if len(dates) < 2 else [dates[0], dates[-1]],
        sections=shown,
        studies=[decisions.study(item, f"choice-{i}") for i, item in enumerate(chosen, 1)],
        audit=decisions.audit(
            [item for item in items if not isinstance(item, Release | DECISIONS)]
        ),
        accounts=spending.accounts(releases),
        private=all(release.guarantee.private for release in releases),
        unreceipted=sum(release.receipt is None for release in releases),
        versions=sorted(
            {release.receipt.version for release in releases if release.receipt is not None}
        ),
    )


def _flat(items: object) -> list[Item]:
    """One item or several, as a list; lists among them are opened."""
    found: list[Item] = []
    for item in items if _is_several(items) else [items]:
        if _is_several(item):
            found += _flat(item)
        elif isinstance(item, Release | DECISIONS | Finding):
            found.append(item)
        else:
            raise UsageError(
                f"a report on {type(item).__name__}",
                "a report is made of releases, choices, windows and findings of an audit",
                "Give what Publisher.release or sf.load returned",
            )
    if not found:
        raise UsageError(
            "a report on nothing", "there is no release to show", "Give at least one release"
        )
    return found


def _is_several(item: object) -> TypeGuard[Iterable[object]]:
    return isinstance(item, Iterable) and not isinstance(item, str | bytes | Mapping | Choices)


@cache
def _template() -> jinja2.Template:
    """The page's template: every value is escaped, and a missing one is an error."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    made = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return made.get_template("template.html")
