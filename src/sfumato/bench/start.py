"""What it costs to start: the import and the command's help, beside the interpreter's own start."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from sfumato.bench.measuring import Chart, Row

CHART = Chart("ms", ("what",), others=("python -c pass", "import numpy"))
WAYS = {
    "python -c pass": ["-c", "pass"],
    "import sfumato": ["-c", "import sfumato"],
    "sfumato --help": ["-m", "sfumato", "--help"],
    "import numpy": ["-c", "import numpy"],
}


def rows(quick: bool = False) -> list[Row]:
    """Measure each way in turn, round after round, so that a busy moment hits all."""
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(7 if quick else 25):
        for name, words in WAYS.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            times[name].append(1e3 * (time.perf_counter() - started))
    floor = statistics.median(times["python -c pass"])
    return [
        {
            "what": name,
            "ms": (m := statistics.median(found)),
            "ms beyond the interpreter": m - floor,
        }
        for name, found in times.items()
    ]
