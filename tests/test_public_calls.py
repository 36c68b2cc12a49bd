"""Every public call refuses what does not fit it: in three parts, by name, in one frame of ours."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

import sfumato as sf
from sfumato import risk, streaming, testing
from sfumato.errors import ArgumentError, explained

DOORS: tuple[ModuleType, ...] = (sf, streaming, risk, testing)
INNER = (
    *(sf.Question, sf.Counter, sf.Plan),  # the publisher calls their methods
    *(sf.Domain, sf.Interval, sf.Categories, sf.Keys, sf.Calendar),
    *(sf.Month, sf.Week, sf.Weekday, sf.Hour, sf.Year, sf.Unit, sf.Source, sf.Ledger),
)
"""The classes whose methods are for the library and its extensions: here they are only made."""


class Call(NamedTuple):
    """A public call.

    Attributes
    ----------
    name : str
    function : callable
    bound : tuple
        What stands for ``self``: a call that does not fit never looks at it.
    """

    name: str
    function: Callable[..., object]
    bound: tuple[object, ...]

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Its parameters, without self."""
        listed = list(inspect.signature(self.function).parameters.values())
        return listed[len(self.bound) :]


def calls() -> Iterator[Call]:
    for door in DOORS:
        for name in door.__all__:
            public = getattr(door, name)
            if isinstance(public, FunctionType):
                yield Call(f"{door.__name__}.{name}", public, ())
            elif isinstance(public, type) and not issubclass(public, Exception):
                if not inspect.isabstract(public):
                    yield Call(f"{door.__name__}.{name}", public, ())
                yield from methods(f"{door.__name__}.{name}", public)


def methods(path: str, kind: type) -> Iterator[Call]:
    if issubclass(kind, INNER):
        return
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        is_method = isinstance(method, FunctionType | classmethod | staticmethod)
        if name.startswith("_") or not is_method:
            continue
        bound = (object(),) if isinstance(method, FunctionType) else ()
        yield Call(f"{path}.{name}", getattr(kind, name), bound)


CALLS = {call.name: call for call in calls()}


def refused(call: Call, *args: object, **named: object) -> str:
    with pytest.raises(ArgumentError) as refusal:
        call.function(*call.bound, *args, **named)
    assert isinstance(refusal.value, sf.UsageError)
    asked, obstacle, remedy = refusal.value.args
    assert asked.partition("(")[0].split(".")[-1] == call.function.__name__
    assert all(part and not part.endswith(".") for part in (asked, obstacle, remedy))
    assert remedy.startswith("Write ")
    assert refusal.value.__cause__ is refusal.value.__context__ is None
    return str(refusal.value)


def test_what_the_design_names_is_called() -> None:
    assert len(CALLS) > 300
    for name in (
        *("source", "preview", "choose", "recommend", "reconcile", "window", "report", "load"),
        *("Risk", "BPM", "PrivateKMeans", "Publisher", "Publisher.release", "Publisher.preview"),
        *("Release.accuracy", "HistogramRelease.to_csv", "Partition.count", "Partition.sample"),
        *("TablesRelease.published", "Stream.push", "Stream.history", "BPM.perturb"),
        *("streaming.TreeAggregator.get_cumsum_and_update", "streaming.get_step_idx"),
        *("risk.posterior_belief", "testing.deterministic", "Choice.plot", "Window.explain"),
    ):
        assert f"sfumato.{name}" in CALLS


@pytest.mark.parametrize("name", CALLS)
def test_what_does_not_fit_is_refused(name: str) -> None:
    a_wrong_name_names_the_right_one(CALLS[name])
    a_missing_argument_is_named(CALLS[name])
    a_surplus_argument_is_counted(CALLS[name])


def a_wrong_name_names_the_right_one(call: Call) -> None:
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in call.parameters):
        return
    for parameter in call.parameters or [None]:
        if parameter is not None and parameter.kind in (
            parameter.POSITIONAL_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            continue
        right = "nothing" if parameter is None else parameter.name
        said = refused(call, **{f"{right}z": None})
        assert f"{right}z=..." in said
        assert ("there are none" if parameter is None else repr(right)) in said


def a_missing_argument_is_named(call: Call) -> None:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        parameter.name
        for parameter in call.parameters
        if parameter.default is parameter.empty and parameter.kind not in variable
    ]
    if needed:
        said = refused(call)
        assert f"it lacks {' and '.join(needed)}. Write " in said


def a_surplus_argument_is_counted(call: Call) -> None:
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in call.parameters):
        return
    by_position = [
        parameter.name
        for parameter in call.parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    said = refused(call, *[None] * (len(by_position) + 1))
    assert f"of {len(by_position) + 1} arguments without a name" in said
    assert all(argument in said for argument in by_position)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('sf.Histogram("age", by="ward")', 'sf.Histogram(["ward", "age"])'),
        ("sf.KMeans(k=3)", "did you mean 'n_clusters'?"),
        ("sf.PrivateKMeans(k=3)", "did you mean 'n_clusters'?"),
        ('sf.Mean("age", bins=3)', 'Write sf.Histogram("age", bins=10)'),
        ('sf.Quantiles("age", bins=3)', 'Write sf.Histogram("age", bins=10)'),
        ('sf.Mean(axis="age")', "did you mean 'value'?"),
        ('sf.Mean(axes="age")', "did you mean 'value'?"),
        ('sf.Histogram(axis="age")', "did you mean 'axes'?"),
        ('sf.Histogram(column="age")', "did you mean 'axes'?"),
        ('sf.Histogram("age", epsilon="1")', 'publisher.release(question, epsilon="0.5")'),
        ('sf.Mean("age", person="patient")', "sf.source(data, domain, person="),
        ("sf.choose(domain=3)", "did you mean 'universe'?"),
        ("sf.Risk(adv=1)", "did you mean 'advantage'?"),
        ('sf.Histogram(sf.Month("date"))', "sf.Domain(name=sf.Month(...))"),
        ("sf.Mean(sf.Interval(0, 9))", "sf.Domain(name=sf.Interval(...))"),
        ('sf.Histogram([sf.Month("date"), "age"])', "sf.Domain(name=sf.Month(...))"),
        ('sf.Domain(age=sf.Mean("age"))', "ask the question of a publisher"),
        ('sf.Domain(sf.Mean("age"))', "ask the question of a publisher"),
        ('sf.source("visits.csv", sf.Mean("age"))', "ask the question of a publisher"),
    ],
)
def test_what_stands_in_the_wrong_place_is_told_its_own(written: str, says: str) -> None:
    with pytest.raises(sf.UsageError) as refusal:
        eval(written, {"sf": sf})
    assert len(refusal.value.args) == 3
    assert says in str(refusal.value)


def test_a_type_error_from_within_is_not_caught() -> None:
    """Whether it is raised there, or comes of another call that does not fit."""

    @explained
    def adds(first: Any, second: Any = 1) -> Any:
        return first + second

    @explained
    def calls_wrongly() -> Any:
        return len()  # type: ignore[call-arg]

    for act, says in ((lambda: adds("a"), "concatenate"), (calls_wrongly, "exactly one")):
        with pytest.raises(TypeError, match=says) as raised:
            act()
        assert not isinstance(raised.value, sf.SfumatoError)
    with pytest.raises(ArgumentError, match="adds"):
        adds()


# --- frames ---------------------------------------------------------------------------------------

SCRIPT = """
import json, os, traceback, warnings
import numpy as np, pandas as pd, sfumato as sf, sfumato.streaming as st
warnings.simplefilter("ignore")
table = pd.DataFrame({"age": [1.0, 2.0, 3.0], "ward": ["a", "b", "a"]})
domain = sf.Domain(age=sf.Interval(0, 100), ward=sf.Categories(["a", "b"]))
source = sf.source(table, domain, name="visits")
publisher = sf.Publisher(source, ledger="budget.db", budget="5")
other = sf.source(table.assign(who=["x", "y", "z"]), domain, person="who", name="visits")
release = publisher.release(sf.Histogram("age", bins=4), epsilon="1")
partition = publisher.release(sf.UniformPartitioner("age", partitions=4), epsilon="1")
bpm = sf.BPM(epsilon=2, L=0.3, dimension=2)
stream = publisher.open(sf.Counter(horizon=3), epsilon="1", key="visits")
ours = os.path.dirname(sf.__file__)
frames = {}
for call in CALLS:
    try:
        eval(call)
    except (sf.SfumatoError, sf.InternalError):
        frames[call] = traceback.format_exc().count(f'File "{ours}')
    else:
        frames[call] = None
print(json.dumps(frames))
"""

FAILING = (
    'sf.Publisher(source, budget="ten")',
    'sf.Publisher(source, ledger="budget.db", budget="4")',
    'sf.Publisher(source, ledger="budget.db", budget="rho=1")',
    'sf.Publisher(source, ledger="other.db")',
    'sf.Publisher(source, ledger="nowhere/budget.db", budget="4")',
    'sf.Publisher(other, ledger="budget.db")',
    'publisher.release(sf.Histogram("age"), epsilon="10")',
    'publisher.release(sf.Histogram("age"), rho="0.1")',
    'publisher.preview(sf.Histogram("agee"), epsilon="1")',
    'publisher.open(sf.Counter(horizon=3), epsilon="x", key="v")',
    'stream.push("x")',
    'publisher.check("age")',
    'sf.preview(sf.Histogram("agee"), domain=domain, unit=source.unit, epsilon="1")',
    'sf.window(sf.Histogram("age"), domain=domain, unit=source.unit, measure="zcdp",'
    ' risk=sf.Risk(prior="0.01", posterior="0.05"), accuracy=sf.Within(20))',
    'sf.source("visits.csv", domain, person=3)',
    'sf.choose([1, 2, 3], size=2, query="men", risk="1/3")',
    'sf.recommend(3, sf.Histogram("age"), epsilon="1")',
    'sf.histogram_accuracy("laplac", epsilon=0.2, alpha=0.05)',
    'sf.histogram_epsilon("laplace", accuracy=-1, alpha=0.05)',
    'sf.risk.posterior_belief([1, 2, 3], 5, "mean", result=1, epsilon=1)',
    'sf.risk.optimal_epsilon([1, 2, 3], 2, "mean", risk=2)',
    'sf.load("none.json")',
    'sf.report([], "report.html")',
    "sf.reconcile([])",
    "sf.disclose([])",
    "sf.Interval(10, 5)",
    'sf.Interval("2025-01-01", 5)',
    'sf.Categories("a,b")',
    "sf.Domain(age=float)",
    'sf.Quantiles("age", at=[2])',
    "sf.Counter(horizon=-1)",
    'sf.Histogram(sf.Month("date"))',
    "sf.Plan([])",
    'sf.PureDP("x")',
    'sf.Risk(prior="0.5", posterior="0.4")',
    "sf.BPM(epsilon=-1, L=0.3, dimension=2)",
    "sf.MultivariateLaplace(epsilon=0, dimension=2)",
    "sf.PrivateKMeans(n_clusters=0).fit(np.zeros((3, 2)))",
    "sf.PrivateKMeans(n_clusters=2).predict(np.zeros((3, 2)))",
    "sf.Median",
    "st.build_tree",
    "release.accuracy(confidence=2)",
    "release.interval(confidence=2)",
    'release.to_csv("nowhere/release.csv")',
    'release.to_excel("nowhere/release.xlsx")',
    'release.save("nowhere/release.json")',
    "release.marginal('ward')",
    "partition.count(agee=(1, 2))",
    "partition.sample(-1)",
    "partition.assign(np.zeros((3, 4)))",
    "bpm.perturb(np.zeros((3, 5)))",
    "bpm.density(np.zeros(5), np.zeros(2))",
    "st.TreeAggregator(3)",
    "st.get_step_idx(3)",
    'st.compute_zcdp_single_tree("x", 1)',
    "sf.Histogram(axis=3)",
    "publisher.release(question=3)",
    'publisher.preview(sf.Histogram("age", bins=0), epsilon="1")',
)


def run(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "SFUMATO_TRACEBACK": "", **environment},
    )


def test_a_refusal_shows_few_frames_of_ours(tmp_path: Path) -> None:
    done = run(SCRIPT.replace("CALLS", repr(FAILING)), tmp_path)
    assert done.returncode == 0, done.stderr
    frames = json.loads(done.stdout)
    assert {call: count for call, count in frames.items() if count is None} == {}
    assert {call: count for call, count in frames.items() if count > 3} == {}


DYING = (
    "import sfumato as sf\n"
    'source = sf.source([[1.0]] and __import__("numpy").zeros((3, 1)),'
    ' sf.Domain(x=sf.Interval(0, 4)), name="three")\n'
    'sf.Publisher(source, ledger="budget.db", budget="ten")\n'
)


def test_a_script_that_dies_shows_its_own_line_and_the_sentence(tmp_path: Path) -> None:
    ours = f'File "{Path(sf.__file__).parent}'
    short = run(DYING, tmp_path).stderr
    assert 'File "<string>", line 3' in short
    assert 0 < short.count(ours) <= 3
    assert short.splitlines()[-1].startswith("sfumato.errors.UsageError: budget = 'ten': ")
    assert "direct cause" not in short
    assert "another exception" not in short
    whole = run(DYING, tmp_path, SFUMATO_TRACEBACK="full").stderr
    assert whole.count(ours) > 3
    assert whole.splitlines()[-1] == short.splitlines()[-1]
