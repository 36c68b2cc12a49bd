"""A server takes reports to one mechanism, refuses all else, and has no way to a true value."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.local import Collector, Report
from sfumato.local import collector as collecting
from sfumato.local.client import label, reports

MADE = sf.BPM(4, "auto", 2)


@pytest.mark.parametrize("name", ["r.jsonl", "r.parquet"])
def test_reports_travel_by_file(tmp_path: Path, name: str) -> None:
    drawn = reports(MADE, np.random.default_rng(0).random((500, 2)))
    collecting.write(drawn, tmp_path / name)
    server = Collector()
    server.read(tmp_path / name)
    server.read(tmp_path / name)  # copies count once
    assert (len(server), server.refused, server.mechanism) == (500, 500, MADE)
    assert np.array_equal(server.points(), MADE.place(np.array([each.cells for each in drawn])))
    assert server.decode(2, random_state=1).centers.shape == (2, 2)


def test_what_is_no_report_is_counted_and_left_out(tmp_path: Path) -> None:
    good = reports(MADE, np.full((3, 2), 0.5))
    bad = [
        Report(label(sf.BPM(8, "auto", 2)), "a", (1, 2)),
        Report(good[0].to, "b", (1, 2, 3)),
        Report(good[0].to, "c", (-1, 2)),
        Report(good[0].to, "d", (2**16, 2)),
        Report(good[0].to, "", (1, 2)),
        good[0],
    ]
    lines = [json.dumps({"to": r.to, "id": r.id, "cells": r.cells}) for r in good + bad]
    lines += [
        "",
        "no JSON",
        '{"to": 1}',
        '{"to": "x", "id": "y", "cells": [0.5]}',
        '{"to": "x", "id": "y", "cells": [1], "value": 7}',
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    server = Collector(MADE)
    server.read(tmp_path / "r.jsonl")
    assert (len(server), server.refused) == (3, len(bad) + 4)
    for name, content in (("none.jsonl", None), ("bad.parquet", b"no parquet")):
        if content:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(sf.DataError):
            server.read(tmp_path / name)
    with pytest.raises(sf.UsageError, match="none has been collected"):
        Collector().decode(1)


def test_the_server_has_no_way_to_a_true_value() -> None:
    """The collector and the decoder import nothing that perturbs or reads tables, by name or by
    module.
    """
    room = Path(collecting.__file__).parent
    for path in [room / "collector.py", *(room / "decoding").glob("*.py")]:
        source = path.read_text(encoding="utf-8")
        named = {
            alias.name
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom | ast.Import)
            for alias in node.names
        }
        assert not named & {"Client", "draw", "reports", "to_unit", "current", "Offsets"}
        assert "perturb(" not in source
        assert "draw_cells(" not in source
