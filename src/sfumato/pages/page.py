"""One page that can be handed to a board: what was asked, the answers with their accuracy, what was promised and spent.

The page is one file. It loads nothing, runs nothing, and is the same to the last byte for the same releases.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from sfumato.errors import DataError, UsageError
from sfumato.pages import sections, spending
from sfumato.release import Release

TITLE = "What was released"


def report(items: Release | Iterable[Release], path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Write one self-contained page about releases.

    Parameters
    ----------
    items : Release, or several
        As ``Publisher.release`` or ``sf.load`` gives them. The page holds what they hold and nothing else.
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
        If there is no release, or something else is among them.
    DataError
        If the file cannot be written.
    """
    target = Path(path)
    text = render(_releases(items), title)
    try:
        target.write_bytes(text.encode())
    except OSError as error:
        reason = error.strerror or "the file cannot be written"
    else:
        return target
    raise DataError(f"writing {target}", reason, "Choose a path that can be written")


def render(releases: list[Release], title: str | None = None) -> str:
    """Make the page as text: the same text for the same releases."""
    shown = [sections.section(release, f"answer-{i}") for i, release in enumerate(releases, 1)]
    dates = sorted({release.receipt.time[:10] for release in releases if release.receipt is not None})
    return _template().render(
        title=title or TITLE,
        dates=dates if len(dates) < 2 else [dates[0], dates[-1]],
        sections=shown,
        accounts=spending.accounts(releases),
        private=all(release.guarantee.private for release in releases),
        unreceipted=sum(release.receipt is None for release in releases),
        versions=sorted({release.receipt.version for release in releases if release.receipt is not None}),
    )


def _releases(items: Any) -> list[Release]:
    """One release or several, as a list."""
    if isinstance(items, Release):
        return [items]
    found = list(items) if isinstance(items, Iterable) and not isinstance(items, str | bytes) else [items]
    for item in found:
        if not isinstance(item, Release):
            asked = f"a report on {type(item).__name__}"
            raise UsageError(asked, "a report is made of releases", "Give what Publisher.release or sf.load returned")
    if not found:
        raise UsageError("a report on nothing", "there is no release to show", "Give at least one release")
    return found


@cache
def _template() -> jinja2.Template:
    """The page's template: every value is escaped, and a missing one is an error."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    made = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.get_template("template.html")
