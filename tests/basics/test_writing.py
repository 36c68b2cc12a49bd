"""No file is written over a ledger, and none where there is no path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.files import write_bytes
from sfumato.cli import run
from sfumato.errors import UsageError


def test_nothing_is_written_over_a_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    domain = sf.Domain(lon=sf.Interval(0, 4), lat=sf.Interval(0, 4))
    source = sf.source(np.array([[1.0, 2.0]]), domain, name="t")
    with sf.Publisher(source, ledger="b.db", account="a", budget="1") as publisher:
        release = publisher.release(
            sf.UniformPartitioner(["lon", "lat"], partitions=4), epsilon="1"
        )
    release.save("r.json")
    held = {name: Path(name).read_bytes() for name in ("b.db", "b.db.secrets")}
    for name in held:
        for write in (release.save, lambda path: sf.report([release], path), release.to_geojson):
            with pytest.raises(sf.DataError, match="such as a ledger"):
                write(name)
        for command in (["ledger", "export", "--ledger", "b.db"], ["report", "r.json"]):
            assert run([*command, "--out", name]) == 4
            assert "such as a ledger" in capsys.readouterr().err
    assert {name: Path(name).read_bytes() for name in held} == held
    release.save("r.json")  # any other file is replaced


@pytest.mark.parametrize("path", [None, 3, ["a"], b"a", "\ud800"])
def test_what_is_no_path_is_refused(path: object) -> None:
    with pytest.raises(UsageError) as refusal:
        write_bytes(path, b"")  # type: ignore[arg-type]
    assert len(refusal.value.args) == 3
