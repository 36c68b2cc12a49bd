"""How long the import and the help of the command take, beside the interpreter's own start."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.measuring import Chart, Row

CHART = Chart("ms", ("what",), others=("python -c pass", "import numpy"))
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import sfumato": ["-c", "import sfumato"],
    "sfumato --help": ["-m", "sfumato", "--help"],
    "import numpy": ["-c", "import numpy"],
}


def rows(quick: bool = False) -> list[Row]:
    """Measure each command in turn, round after round, so that a slow spell meets all."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(7 if quick else 25):
        for name, args in COMMANDS.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *args], check=True, stdout=subprocess.DEVNULL)
            times[name].append(1e3 * (time.perf_counter() - started))
    floor = statistics.median(times["python -c pass"])
    medians = {name: statistics.median(found) for name, found in times.items()}
    return [
        {"what": name, "ms": median, "ms beyond the interpreter": median - floor}
        for name, median in medians.items()
    ]
