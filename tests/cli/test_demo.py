"""``sfumato demo``: the same answers again, for free.

`tests/demo` has the demo run once, and then again by the command.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.demo import run
from sfumato.errors import BudgetExceeded

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.deep
def test_the_demo_runs_and_runs_again_for_free(sfumato: Run) -> None:
    code, out, err = sfumato("demo")
    assert code == 0, err
    page = Path(out.removeprefix("Report: ").strip())
    assert page.stat().st_size > 50_000
    saved = {path.name: path.read_bytes() for path in page.parent.glob("*.json")}
    assert len(saved) == 11
    assert sfumato("demo")[0] == 0
    assert saved == {path.name: path.read_bytes() for path in page.parent.glob("*.json")}
    assert sfumato("ledger", "verify", "--ledger", page.parent / "budget.db")[0] == 0


def test_a_folder_of_another_version_is_not_the_end(
    sfumato: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent(folder: Path, progress: object) -> None:
        raise BudgetExceeded("a charge", "nothing is left", "Ask for less")

    monkeypatch.setattr(run, "publish", spent)
    code, _, err = sfumato("demo")
    assert (code, "Name a new folder: sfumato demo --out FOLDER." in err) == (3, True)
