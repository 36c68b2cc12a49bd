"""The demo is run once for all of these tests, and once more, for free, by each further worker."""

from __future__ import annotations

import fcntl
import html
import os
import re

import msgspec
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from demo.reading import BY_MONTH, NORMS, PERSONS, QUANTILES, Answer, inside
from sfumato.demo import flights_path, run
from sfumato.questions.persons import PersonsRelease


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> run.Demo:
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return run.publish(folder / "demo")


@pytest.fixture(scope="session")
def text(demo: run.Demo) -> str:
    return html.unescape(demo.report.read_text("utf-8"))


@pytest.fixture(scope="session")
def pages(text: str) -> list[Answer]:
    found = []
    parts = re.findall(
        r'<section class="answer" aria-labelledby="(.*?)">(.*?)</section>', text, re.DOTALL
    )
    counted = inside(text, '<h3 id="counted">Which rows were counted</h3>(.*?)</section>')
    groups = re.findall(r'<p class="small">(.*?)</p>\s*<p>(.*?)</p>', counted, re.DOTALL)
    for anchor, part in parts:
        of_answer = [rows for answers, rows in groups if f'"#{anchor}"' in answers]
        assert len(of_answer) == 1
        body = re.findall(r"<tbody>(.*?)</tbody>", part, re.DOTALL)
        rows = [
            [re.sub("<.*?>", "", field) for field in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)]
            for row in re.findall(r"<tr>(.*?)</tr>", "".join(body), re.DOTALL)
        ]
        found.append(
            Answer(
                title=inside(part, r"<h2[^>]*><bdi>(.*?)</bdi></h2>"),
                caption="".join(re.findall(r"<figcaption[^>]*>(.*?)</figcaption>", part)),
                accuracy=inside(part, r"<b>How accurate it is.</b> (.*?)</p>"),
                counted=of_answer[0],
                rows=[row for row in rows if row],
            )
        )
    return found


@pytest.fixture(scope="session")
def flights() -> pd.DataFrame:
    table: pd.DataFrame = pq.read_table(flights_path()).to_pandas()
    return table


@pytest.fixture(scope="session")
def persons(demo: run.Demo) -> PersonsRelease:
    """How many aircraft there are, and how many flights each has."""
    release = demo.releases[PERSONS]
    assert isinstance(release, PersonsRelease)
    return release


@pytest.fixture(scope="session")
def norms(demo: run.Demo) -> PersonsRelease:
    """How the flights of each aircraft spread over the months."""
    release = demo.releases[NORMS]
    assert isinstance(release, PersonsRelease)
    return release


@pytest.fixture(scope="session")
def norm(demo: run.Demo) -> int:
    """The limit on the norm of an aircraft's counts."""
    unit = demo.releases[BY_MONTH].guarantee.unit
    assert unit.limits is not msgspec.UNSET
    return int(unit.limits.norm_per_person)


@pytest.fixture(scope="session")
def limit(demo: run.Demo) -> int:
    """The limit on flights of an aircraft, for quantiles."""
    return demo.releases[QUANTILES].guarantee.unit.rows_per_person


@pytest.fixture(scope="session")
def held(flights: pd.DataFrame) -> pd.DataFrame:
    """The flights that name their aircraft, and where each stands in the tables of the demo."""
    held = flights[flights.tailnum.notna()].copy()
    held["part"] = np.digitize(held.hour, run.PARTS_OF_THE_DAY[1:-1])
    held["late"] = held.dep_delay >= run.LATE[1]
    held["three_hours"] = np.digitize(held.hour, [8, 11, 14, 17, 20])
    return held


@pytest.fixture(scope="session")
def of_each(held: pd.DataFrame) -> np.ndarray:
    """How many flights each aircraft has."""
    return held.groupby("tailnum", observed=True).size().to_numpy()
