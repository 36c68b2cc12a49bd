"""The figures of an audit are told as they are: no power is no pass, and a failure is named."""

from __future__ import annotations

import dataclasses

import pytest

from sfumato.reports.disclosure.fields import figures
from sfumato.reports.tables import Finding


@dataclasses.dataclass
class Line:
    """A line of an audit."""

    subject: str
    failed: bool = False
    ok: bool = True
    columns = ("subject",)

    def row(self) -> tuple[str, ...]:
        return (self.subject,)


def test_a_line_of_an_audit_is_known():
    assert isinstance(Line("Mean"), Finding)
    assert not isinstance("Mean", Finding)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([Line("a"), Line("b")], ["behind 2 claims", "2 kept within", "None exceeded its claim."]),
        (
            [Line("a"), Line("b", ok=False)],
            ["1 kept within", "For 1 the run had no power", "None exceeded"],
        ),
        (
            [Line("a", failed=True, ok=False), Line("b")],
            ["1 kept", "1 exceeded their claim or could not be judged: a."],
        ),
    ],
)
def test_figures(lines, said):
    text = figures(lines)
    assert all(part in text for part in said)
    assert ("None exceeded" in text) == (not any(line.failed for line in lines))
    assert ("no power" in text) == any(not line.ok and not line.failed for line in lines)
