"""Paths to write are checked before anything is paid."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli.paths import NewFile, NewFolder

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("args", "obstacle"),
    [
        (["--plot", "nowhere/h.png"], "its folder does not exist"),
        (["--geojson", "nowhere/cells.json"], "its folder does not exist"),
        (["--geojson", "."], "it is a folder"),
        (["--out", "people.parquet/saved"], "people.parquet is no folder"),
    ],
)
def test_what_cannot_be_written_is_found_before_it_is_paid(
    sfumato: Run, args: list[str], obstacle: str
) -> None:
    paid = ["--axis", "age=0..120", "--epsilon", "1", "--budget", "1", "--ledger", "b.db"]
    code, out, err = sfumato("partition", "people.parquet", *paid, *args)
    assert (code, out) == (4, "")
    assert obstacle in err
    assert not Path("b.db").exists()


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    for kind, name in ((NewFile(), "page.html"), (NewFolder(), "saved")):
        with pytest.raises(sf.DataError, match="may not be written"):
            kind.convert(str(tmp_path / name), None, None)
    (tmp_path / "old.html").touch()
    with pytest.raises(sf.DataError, match="the file may not be written"):
        NewFile().convert(str(tmp_path / "old.html"), None, None)


def test_what_is_replaced_is_said(sfumato: Run) -> None:
    asked = ["--axis", "age=0..120", "--epsilon", "1", "--budget", "1", "--ledger", "b.db"]
    command = ["histogram", "people.parquet", *asked, "--csv", "a.csv", "--out", "saved"]
    code, _, err = sfumato(*command)
    assert code == 0
    assert "Replaced" not in err
    for path in (Path("a.csv"), Path("saved/01-histogram-of-age.json")):
        os.utime(path, (0, 0))

    err = sfumato("report", "saved/01-histogram-of-age.json")[2]
    assert err == ""
    os.utime("report.html", (0, 0))
    err = sfumato("report", "saved/01-histogram-of-age.json")[2]
    assert err == "Replaced what was there before: report.html\n"
    refused = sfumato("histogram", "people.parquet", *asked, "--csv", "a.csv", "--bins", "x")
    assert refused[0] == 2
    assert "Replaced" not in refused[2]
