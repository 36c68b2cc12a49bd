"""What every kind of question says and answers under public bits.

A rebuild must not change these outputs.

``python tests/support/outputs.py tests/fixtures/v0_2/outputs.json`` writes them. The file there was
written by version 0.2 before its inside was rebuilt. Since then some sentences of previews and the
names of bins of whole numbers, which are not stored, were put in plainer words, and quantiles pay
for their ranks: what was stored of them before is in files of its own. Their tables lead with the
intervals of values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato.testing import deterministic

ROWS = 400
DOMAIN = sf.Domain(
    x=sf.Interval(0, 16, step=1),
    y=sf.Interval(-1, 1),
    day=sf.Interval("2026-01-01", "2026-01-29"),
    kind=sf.Categories(["a", "b", "c"], other="else"),
    shop=sf.Keys(),
)
PLANE = ["x", "y"]
ONE = {"epsilon": "1"}
KEYED = {"epsilon": "4", "delta": "0.001"}
GAUSSIAN = {"rho": "0.5"}

QUESTIONS = {
    "histogram": (sf.Histogram("x"), ONE),
    "histogram of two axes": (sf.Histogram(["kind", "y"], bins=4), GAUSSIAN),
    "histogram of days": (sf.Histogram("day", width=7), ONE),
    "histogram of edges": (sf.Histogram("y", bins=[-1, -0.25, 0.5, 1]), ONE),
    "histogram by records": (sf.Histogram("y", records=80), ONE),
    "keys": (sf.Histogram("shop"), KEYED),
    "keys by kind": (sf.Histogram(["shop", "kind"], selection="stability"), KEYED),
    "keys by a threshold": (sf.Histogram("shop", selection="threshold"), KEYED),
    "quantiles": (sf.Quantiles("x"), ONE),
    "quantiles by kind": (sf.Quantiles(PLANE, at=[0.5], by="kind", method="tree"), GAUSSIAN),
    "quantiles, joint": (sf.Quantiles("y", method="joint"), ONE),
    "quantiles, recursive": (sf.Quantiles("y", method="recursive"), ONE),
    "uniform": (sf.UniformPartitioner(PLANE), ONE),
    "uniform, given": (sf.UniformPartitioner(PLANE, partitions=9), GAUSSIAN),
    "adaptive": (sf.AdaptiveGridPartitioner(PLANE), ONE),
    "privtree": (sf.PrivTreePartitioner(PLANE), ONE),
    "auto": (sf.AutoPartitioner(PLANE), GAUSSIAN),
    "binary": (sf.BinaryPartitioner(PLANE, depth=3, stop_below=20), ONE),
    "median": (sf.MedianPartitioner(PLANE, depth=3), ONE),
    "multi-quantile": (sf.MultiQuantilePartitioner(PLANE, depth=2, fanout=3), ONE),
}
COUNTERS = {
    "counter": (sf.Counter(horizon=20), ONE),
    "counter of values": (sf.Counter(horizon=None, value=sf.Interval(0, 10, step=0.5)), ONE),
    "counter by kind": (sf.Counter(horizon=6, by="kind", method="toeplitz"), GAUSSIAN),
}
STEPS = {
    "counter": [3, 0, 5],
    "counter of values": [[1.5, 12.0], [], [0.25]],
    "counter by kind": [["a", "b"], ["zzz"], []],
}


def source() -> sf.Source:
    """A small table, the same everywhere: it comes from whole numbers alone."""
    import pyarrow as pa

    at = np.arange(ROWS)
    return sf.source(
        pa.table(
            {
                "x": (at * 7 % 17).astype(float),
                "y": ((at * 37) % 101 - 50) / 50,
                "day": np.datetime64("2026-01-01", "D") + (at * 5 % 28),
                "kind": [["a", "b", "c", "d"][i * i % 4] for i in range(ROWS)],
                "shop": [f"shop {i % 9 if i % 3 else 1}" for i in range(ROWS)],
            }
        ),
        DOMAIN,
        name="outputs",
    )


def written(release: sf.Release) -> dict[str, object]:
    """A release without its receipt, which is random, and what it says of itself."""
    plain = json.loads(bytes_of(release))
    plain["receipt"] = None
    frame = release.to_frame()
    return {
        "release": json.dumps(plain),
        "title": release.title,
        "guarantee": str(release.guarantee),
        "columns": frame.column_names,
        "rows": [[str(value) for value in row.values()] for row in frame.to_pylist()[:12]],
        "accuracy": np.asarray(release.accuracy("0.9"), float).reshape(-1)[:12].tolist(),
        "together": [
            np.asarray(end, float).reshape(-1)[:12].tolist()
            for end in release.interval("0.95", True)
        ],
    }


def bytes_of(release: sf.Release) -> bytes:
    """What ``save`` writes."""
    from sfumato.basics.structs import to_bytes

    return to_bytes(release)


def outputs() -> Iterator[tuple[str, dict[str, object]]]:
    """Every question's preview and answer, by name."""
    for name, (question, cost) in QUESTIONS.items():
        with (
            deterministic(2026),
            sf.Publisher(source(), budget=sf.ApproxDP(100, "0.5")) as publisher,
        ):
            said = str(publisher.preview(question, rows=ROWS, **cost))
            spends = publisher if "rho" not in cost else sf.Publisher(source(), budget=sf.ZCDP(100))
            yield name, {"preview": said} | written(spends.release(question, **cost))
    for name, (counter, cost) in COUNTERS.items():
        budget = sf.ZCDP(100) if "rho" in cost else sf.PureDP(100)
        with deterministic(2026), sf.Publisher(source(), budget=budget) as publisher:
            said = str(publisher.preview(counter, **cost))
            with publisher.open(counter, key=name, **cost) as stream:
                totals = [str(stream.push(step)) for step in STEPS[name]]
                yield name, {"preview": said, "totals": totals} | written(stream.history())


if __name__ == "__main__":
    found = dict(outputs())
    Path(sys.argv[1]).write_text(
        json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
