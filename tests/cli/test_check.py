"""The check says by its exit code whether a release would be refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_check_that_finds_a_refusal_does_not_exit_as_done(
    sfumato: Run, form: tuple[str, ...]
) -> None:
    plan = Path("plan.toml").read_text(encoding="utf-8")
    assert sfumato("check", "plan.toml", *form)[0] == 0
    Path("wrong.toml").write_text(plan.replace("day", "dai"))
    code, checked, err = sfumato("check", "wrong.toml", *form)
    assert code == sfumato("release", "wrong.toml")[0] == 4
    assert err == ""
    if form:
        assert "column 'dai'" in json.loads(checked)["refused"]
    else:
        assert "a release would be refused, and nothing charged" in checked


def test_what_a_plan_may_not_ask_of_its_persons_is_refused_as_in_a_release(sfumato: Run) -> None:
    plan = Path("plan.toml").read_text(encoding="utf-8")
    counted = 'type = "histogram"\ncount = "persons"\n'
    Path("rows.toml").write_text(
        plan.replace('person = "who"\n', "").replace('type = "histogram"\n', counted, 1)
    )
    code, out, err = sfumato("check", "rows.toml")
    assert (code, out) == (2, "")
    assert err == sfumato("release", "rows.toml")[2]
