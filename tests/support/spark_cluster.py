"""Kill an executor of a cluster on this machine, at a moment that does not depend on luck.

A part of the work holds still until the process that evaluates it is dead: it says in a file which
process that is, and waits. So the executor dies amid the part, and what its earlier parts left on
its disk is lost with it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf
from conformance import reader_contract
from data import random_tables
from sfumato.answers.counts import Needs
from sfumato.data import count, select_in_engine, selects, source
from sfumato.domain.lattice import KeyAxis, Lattice
from sfumato.mechanisms.thresholds import KeyRule
from support import spark

Batches = Iterable[pa.RecordBatch]

PARTS = 8
DOMAIN = sf.Domain(x=sf.Interval(0, 100), shop=sf.Keys())
COLUMNS = (
    "pmod(xxhash64(id, 1L), {persons}L) AS who",
    "CAST(pmod(xxhash64(id, 2L), 100000L) AS DOUBLE) / 1000 AS x",
    # Some keys are near the rule's threshold: other noise would show others.
    "concat('shop ', CAST(floor(sqrt(pmod(xxhash64(id, 3L), 1000000L))) AS STRING)) AS shop",
)


def killed(folder: str, n_rows: int = 200_000) -> dict[str, Any]:
    """What is counted and selected while an executor is killed, and while none is.

    Returns
    -------
    dict
        How many rows are counted and keys selected, and for each kind of work: whether the results
        are the same, whether the executor is gone, and how often each part was evaluated.
    """
    session = _cluster(folder)
    columns = [each.format(persons=n_rows // 10) for each in COLUMNS]
    rows = session.range(0, n_rows, 1, PARTS).selectExpr(*columns)
    rule = reader_contract.RULES_OF_KEYS[-1]
    counts, keys = _persons(rows), _keys(rows, rule)
    found = {}

    def compare(work: str, part: int, in_peace: object, amid: Callable[[Latch], object]) -> None:
        latch = Latch(f"{folder}/{work}", part)
        with latch.killing() as executor:
            same = amid(latch) == in_peace
        gone = len(executor) == 1 and not Path(f"/proc/{executor[0]}").exists()
        found[work] = {"same": same, "killed": gone, "evaluations of parts": latch.evaluations()}

    def held(latch: Latch) -> Any:
        return rows.mapInArrow(latch.held(), rows.schema)

    compare("persons, reading rows", 5, counts, lambda latch: _persons(held(latch)))
    compare("keys, reading rows", 5, keys, lambda latch: _keys(held(latch), rule))
    compare("keys, selecting them", 2, keys, lambda latch: _keys(rows, latch.rule(rule)))
    session.stop()
    return {"rows": sum(counts), "keys": len(keys), "killed": found}


def _cluster(folder: str) -> Any:
    """A session of two executors of one core each, in processes of their own."""
    # Workers write below SPARK_HOME, which is to stay as it is installed.
    home = Path(folder) / "spark"
    home.mkdir()
    for part in spark.installed_in().iterdir():
        if part.name != "work":
            (home / part.name).symlink_to(part)
    os.environ["SPARK_HOME"] = str(home)
    more = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    return spark.session(master="local-cluster[2,1,1024]", **more)


def _persons(rows: Any) -> list[int]:
    """The counts of bounded persons."""
    data = source(rows, DOMAIN, "who", 4)
    lattice = Lattice((random_tables.grid("x", 50),))
    return [int(n) for n in count(data, [lattice], key=bytes(32))[0].counts]


def _keys(rows: Any, rule: KeyRule) -> list[tuple[object, ...]]:
    """The keys that are shown, with their noisy counts."""
    data = source(rows, DOMAIN, "who", 4)
    lattice = Lattice((KeyAxis("shop"),))
    needs = Needs(lattice, lattice.public_size)
    assert selects(data, needs)
    return reader_contract.laid(select_in_engine(data, needs, rule, key=bytes(32)), lattice)


class Latch:
    """Holds one part still until its executor is killed; the part that is evaluated again goes on.

    Parameters
    ----------
    folder : str
        Of files by which processes tell each other where they are.
    part : int
        The number of the part.
    """

    def __init__(self, folder: str, part: int) -> None:
        Path(folder).mkdir()
        self._folder = folder
        self._part = part

    def held(self) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
        """A function of the batches of a part, which leaves them as they are."""
        folder, held_part = self._folder, self._part

        # Sent to executors by value, so it finds all that it uses in itself.
        def passed(batches: Batches) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            part = context.partitionId()
            Path(f"{folder}/part {part} {uuid.uuid4()}").touch()
            yield from batches
            if part == held_part and not Path(f"{folder}/held").exists():
                # This process is a child of Python's daemon, which is a child of the executor.
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
                executor = daemon.rpartition(")")[2].split()[1]
                Path(f"{folder}/holding").write_text(executor, encoding="utf-8")
                Path(f"{folder}/holding").rename(f"{folder}/held")
                while not Path(f"{folder}/killed").exists():
                    time.sleep(0.02)

        return passed

    def rule(self, rule: KeyRule) -> KeyRule:
        """The same rule, whose evaluation holds once a part of keys is shown."""
        held = self.held()

        class HoldingRule(KeyRule):
            def shown_of(self, batches: Batches) -> Iterator[pa.RecordBatch]:
                return held(map(self.shown, batches))

        return HoldingRule(rule.law, rule.secret)

    @contextmanager
    def killing(self) -> Iterator[list[int]]:
        """Kill the executor that holds, once it does; gives its process when that is done."""
        done: list[int] = []
        over = threading.Event()

        def kill() -> None:
            held = Path(f"{self._folder}/held")
            while not held.exists():
                if over.wait(0.02):
                    return
            executor = int(held.read_text(encoding="utf-8"))
            command = Path(f"/proc/{executor}/cmdline").read_bytes()
            assert b"CoarseGrainedExecutorBackend" in command
            os.kill(executor, signal.SIGKILL)
            done.append(executor)
            Path(f"{self._folder}/killed").touch()

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            yield done
        finally:
            over.set()
            thread.join()

    def evaluations(self) -> list[int]:
        """How often each part was begun."""
        begun = [path.name.split()[1] for path in Path(self._folder).glob("part *")]
        return [begun.count(str(part)) for part in range(PARTS)]
