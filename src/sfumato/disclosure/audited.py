"""What an audit of the mechanisms found, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sfumato.disclosure.wording import joined


@runtime_checkable
class Finding(Protocol):
    """One line of an audit: what a disclosure needs of ``sfumato.audit.Finding``."""

    @property
    def subject(self) -> str:
        """The mechanism or question."""

    @property
    def failed(self) -> bool:
        """Whether the subject exceeds its claim or could not be judged."""

    @property
    def ok(self) -> bool:
        """Whether it did not fail, and a fault would have been detected."""


def figures(findings: Sequence[Finding]) -> str:
    """The figures of an audit: how many claims were kept, and which were not.

    A claim that the audit had no power to judge is counted apart: it is no pass.
    """
    failed = [one for one in findings if one.failed]
    ok = sum(one.ok for one in findings)
    weak = len(findings) - len(failed) - ok
    said = [
        f"sfumato audit measured the privacy loss behind {len(findings):,} claims of mechanisms "
        f"and questions. {ok:,} kept within their claim, in runs that would have shown a fault."
    ]
    if weak:
        said.append(f"For {weak:,} the run had no power to show one.")
    if failed:
        names = joined(one.subject for one in failed)
        said.append(f"{len(failed):,} exceeded their claim or could not be judged: {names}.")
    else:
        said.append("None exceeded its claim.")
    return " ".join(said)
