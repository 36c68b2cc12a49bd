"""The page of the long tests: which ran, how they ended, how long they took, for which commit."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping

_LINE = re.compile(r"\| `(tests/.*?)` \| .* \|")


def line_of(test: str, outcome: str, seconds: float, commit: str) -> str:
    """The line of one test."""
    return f"| `{test}` | {outcome} | {seconds:.1f} s | {commit} |"


def page_of(before: str, ran: Mapping[str, str], *, ran_all: bool) -> str:
    """The page after a run.

    Parameters
    ----------
    before : str
        The page as it was; empty if there was none.
    ran : mapping of str to str
        The lines of the tests that ran now, by their names.
    ran_all : bool
        Whether these are all long tests that there are. If not, every other line stays: it holds
        for the commit that it names, also where its test has another name by now.
    """
    old = {found[1]: found[0] for found in map(_LINE.fullmatch, before.splitlines()) if found}
    lines = ran if ran_all else {**old, **ran}
    head = (
        f"# The long tests\n\n`make deep`, Python {platform.python_version()}.\n\n"
        "| test | outcome | time | commit |\n|---|---|---|---|\n"
    )
    return head + "\n".join(lines[test] for test in sorted(lines)) + "\n"
