"""The attack on receipts of version 0.1, run against today's artefacts.

Those receipts told the size of the data file.

Two files, of 5,000 and 5,001 rows, with the same time of modification, are released over 20 fresh
ledgers each. A field that depends on the file and on nothing else is equal within one file and
differs between the two. And a search over sizes and times, with the form of the label known, is to
find nothing that hashes to what is printed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import cli
from sfumato.basics.structs import to_bytes

Fields = dict[str, str]
ROWS = (5_000, 5_001)
LEDGERS = 20
MODIFIED = 1_700_000_000_123_456_789
DOMAIN = sf.Domain(x=sf.Interval(0, 16, step=1))
QUESTION = sf.Histogram("x", bins=4)
PLAN = """
[source]
path = "visits.parquet"
[domain]
x = { type = "interval", lower = 0, upper = 16, step = 1 }
[budget]
account = "plan"
epsilon = "1"
[release]
epsilon = "0.25"
[[questions]]
type = "histogram"
axes = ["x"]
bins = 4
"""


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf of a JSON value, with where it is.

    Texts also piece by piece, since a piece may carry what the rest hides.
    """
    if isinstance(value, dict):
        for name, part in value.items():
            yield from flat(part, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}.length", str(len(value))
        for i, part in enumerate(value):
            yield from flat(part, f"{path}[{i}]")
    elif isinstance(value, str):
        yield path, value
        yield from (
            (f"{path}/{i}", piece) for i, piece in enumerate(re.split(r"[^0-9A-Za-z.]+", value))
        )
    else:
        yield path, str(value)


def lines(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Every word of a text, with its place."""
    for i, line in enumerate(text.splitlines()):
        yield from (
            (f"{name}, line {i}, word {j}", word)
            for j, word in enumerate(re.split(r"[\s<>\"'=;,]+", line))
        )
    yield f"{name}, lines", str(text.count("\n"))


def telling(runs: list[list[Fields]]) -> set[str]:
    """Fields that are one value in all runs on the first file, another on the second."""
    names = set.union(*(set(run) for runs_of_one in runs for run in runs_of_one))
    seen = {
        name: [{run.get(name, "missing") for run in runs_of_one} for runs_of_one in runs]
        for name in names
    }
    return {
        name for name, (one, other) in seen.items() if len(one) == len(other) == 1 and one != other
    }


def laid(folder: Path, rows: int) -> Path:
    """A file at the same place, of the same time, whatever its size."""
    path = folder / "visits.parquet"
    table = pa.table({"x": np.arange(rows) % 16, "name": [f"person {i}" for i in range(rows)]})
    pq.write_table(table, path)
    os.utime(path, ns=(MODIFIED, MODIFIED))
    return path


def one_run(folder: Path, number: int, page: bool = False) -> tuple[Fields, sf.Release]:
    """All fields of what one fresh ledger shows of a release.

    They come from Python, the command line, JSON, the log, and pages.
    """
    plan, out = folder / "plan.toml", folder / "out"
    # In a folder of its own: a new account is warned of one beside it.
    book = folder / f"{number:02d}" / "b.db"
    book.parent.mkdir()
    plan.write_text(PLAN, encoding="utf-8")
    with sf.Publisher(
        sf.source(folder / "visits.parquet", DOMAIN), ledger=book, account="python", budget=1
    ) as pub:
        release = pub.release(QUESTION, epsilon="0.25")
        log = "\n".join(str(entry) for entry in pub.ledger.log())
    found = dict(flat(msgspec.json.decode(to_bytes(release)), "release")) | dict(lines("log", log))
    if page:
        found |= dict(
            lines("report", sf.report(release, folder / "report.html").read_text("utf-8"))
        )
    for name, words in {"table": [], "JSON": ["--json"]}.items():
        with (
            redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as said,
            redirect_stderr(io.StringIO()) as talk,
        ):
            assert (
                cli.run(["release", str(plan), "--ledger", str(book), "--out", str(out), *words])
                == 0
            )
        said.flush()
        found |= dict(lines(name, said.buffer.getvalue().decode())) | dict(
            lines(f"{name}, talk", talk.getvalue())
        )  # type: ignore[attr-defined]
    for path in sorted(out.iterdir()):
        found |= dict(flat(json.loads(path.read_text("utf-8")), path.name))
    return found, release


def all_runs(folder: Path, page: bool = False) -> list[list[Fields]]:
    """The fields of every run on each of the files, which lie at one place in turn."""
    found = []
    for rows in ROWS:
        place = folder / "place"
        place.mkdir(parents=True)
        laid(place, rows)
        found.append([one_run(place, number, page)[0] for number in range(LEDGERS)])
        place.rename(folder / f"{rows}")
    return found


@pytest.fixture(scope="module")
def fields(tmp_path_factory: pytest.TempPathFactory) -> list[list[Fields]]:
    return all_runs(tmp_path_factory.mktemp("sizes"))


def test_the_files_differ_in_size_only(tmp_path: Path) -> None:
    one, other = (laid(tmp_path, rows).stat() for rows in ROWS)
    assert one.st_size != other.st_size
    assert one.st_mtime_ns == other.st_mtime_ns


def test_no_field_tells_the_files_apart(fields: list[list[Fields]]) -> None:
    assert len(fields[0][0]) > 300
    assert not telling(fields)


def test_a_field_that_does_is_found(fields: list[list[Fields]]) -> None:
    size = [hashlib.sha256(f"{rows}".encode()).hexdigest() for rows in ROWS]
    leaky = [
        [found | {"receipt.digest": size[i]} for found in of_one] for i, of_one in enumerate(fields)
    ]
    assert telling(leaky) == {"receipt.digest"}


@pytest.mark.deep
def test_no_field_of_a_page_tells_the_files_apart(
    tmp_path: Path, evidence: Callable[[str, object], None]
) -> None:
    found = all_runs(tmp_path, page=True)
    told = telling(found)
    evidence(
        "two-sizes",
        {
            "rows": ROWS,
            "ledgers each": LEDGERS,
            "fields compared": len(found[0][0]),
            "fields that tell": len(told),
        },
    )
    assert not told


def candidates(path: str, sizes: range, times: range) -> Iterator[bytes]:
    """What version 0.1 hashed.

    It was the account, the question, its cost, the domain, the unit and the label of the source.
    """
    src = sf.source(np.empty((0, 1)), DOMAIN)
    asked = [msgspec.structs.replace(QUESTION, axes=("x",))]
    for time in times:
        for size in sizes:
            label = f"{path} modified {time} of {size} bytes"
            yield to_bytes(
                (
                    "python",
                    asked,
                    [sf.PureDP("0.25")],
                    list(DOMAIN.items()),
                    src.unit,
                    label,
                    "private",
                )
            )
            yield to_bytes(label)
            yield label.encode()


def printed(release: sf.Release) -> set[str]:
    """Everything in a receipt that could be a hash, whole or its first half."""
    text = to_bytes(release).decode()
    return set(re.findall("[0-9a-f]{16,128}", text))


def test_a_search_over_sizes_and_times_finds_nothing(tmp_path: Path) -> None:
    """Whoever knows path and time, and guesses the size, cannot tell a right guess."""
    path = laid(tmp_path, ROWS[0])
    _, release = one_run(tmp_path, 0)
    size, hashes = path.stat().st_size, printed(release)
    assert len(hashes) >= 3
    found = set()
    for guess in candidates(
        str(path.resolve()), range(size - 300, size + 300), range(MODIFIED - 1, MODIFIED + 2)
    ):
        for make in (hashlib.sha256, hashlib.sha1, hashlib.md5, hashlib.blake2b, hashlib.sha512):
            digest = make(guess).hexdigest()
            found |= {
                known
                for known in (digest, digest[:16], digest[:32], digest[:64])
                if known in hashes
            }
    assert not found


def test_the_search_finds_a_receipt_of_version_0_1(tmp_path: Path) -> None:
    """The same search against the digest as it was computed then."""
    path = laid(tmp_path, ROWS[0])
    size = path.stat().st_size
    right = next(
        iter(candidates(str(path.resolve()), range(size, size + 1), range(MODIFIED, MODIFIED + 1)))
    )
    digest = hashlib.sha256(right).hexdigest()
    guesses = candidates(
        str(path.resolve()), range(size - 300, size + 300), range(MODIFIED - 1, MODIFIED + 2)
    )
    assert sum(hashlib.sha256(guess).hexdigest() == digest for guess in guesses) == 1
