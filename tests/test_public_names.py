"""The one public door: sorted, lazy, complete."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys

import pytest

import sfumato as sf
from sfumato import questions as library
from sfumato.answers.registry import answer_of, questions, tag_of
from sfumato.basics.lazily import imported, listed


def test_the_door_is_sorted_and_every_name_opens() -> None:
    assert sf.__all__ == sorted(sf.__all__)
    for name in sf.__all__:
        assert getattr(sf, name) is not None
    assert dir(sf) == sf.__all__


DOCUMENTED = """
    Domain Interval Categories Keys Month Week Weekday Hour Year
    source Publisher preview load report disclose Plan ApproxDP ZCDP PureDP MetricDP Unit
    Histogram Mean Sum Variance Persons recommend Quantiles reconcile
    UniformPartitioner AdaptiveGridPartitioner
    PrivTreePartitioner AutoPartitioner BinaryPartitioner
    MedianPartitioner MultiQuantilePartitioner Shares KMeans BPM MultivariateLaplace PrivateKMeans
    Counter Calendar
    risk choose window Within Risk histogram_accuracy histogram_epsilon testing
    SfumatoError UsageError BoundsRequired Infeasible StoredElsewhere BudgetExceeded DataError
    LedgerError
    InternalError spark_package
"""
ANNOTATED = """
    Source Receipt Ledger Account Question Release Preview Estimate Guarantee Stream Choice Window
    HistogramRelease QuantilesRelease KMeansRelease CounterRelease Partition
    AggregateRelease MeanRelease SumRelease VarianceRelease PersonsRelease Recommendation
    TablesRelease
    Disclosure
"""


OTHERWISE = {"Ledger": "Book"}  # what users call a ledger is the book that its stores are under


def test_what_the_documents_call_and_what_users_annotate_is_public() -> None:
    named = {*DOCUMENTED.split(), *ANNOTATED.split(), "__version__"}
    assert named <= set(sf.__all__)
    assert set(sf.__all__) - named <= set(
        listed("sfumato.questions")
    )  # a new question is one line in the registry, and none here


def test_the_stub_and_the_modules_agree() -> None:
    """Type checkers read the stub, and Python imports what it names.

    Each class is the one of that name.
    """
    for name, place in listed("sfumato").items():
        found = imported(place)
        assert getattr(sf, name) is found
        if isinstance(found, type):
            assert found.__name__ == OTHERWISE.get(name, name)
            assert found.__module__.startswith(place.partition(":")[0])


def test_the_registry_holds_questions_and_no_two_alike() -> None:
    kinds = [imported(place) for place in listed("sfumato.questions").values()]
    assert questions()[: len(kinds)] == tuple(kinds)
    assert len({tag_of(kind) for kind in kinds}) == len(kinds)
    assert {answer_of(kind).__name__ for kind in kinds} <= set(sf.__all__)
    assert sorted(library.__all__) == sorted(listed("sfumato.questions"))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("Histgram", "did you mean 'Histogram'?"),
        ("Median", 'sf.Quantiles("age", at=[0.5])'),
        ("Count", "sf.Histogram"),
        ("Average", "sf.Mean"),
        ("Std", "sf.Variance"),
        ("Histogram2D", "several axes"),
        ("GroupBy", 'by="ward"'),
        ("optimal_epsilon", "sf.risk"),
        ("qqq", "dir(sfumato)"),
    ],
)
def test_an_unknown_name_is_refused_by_the_right_one(name: str, remedy: str) -> None:
    with pytest.raises(AttributeError) as refusal:
        getattr(sf, name)
    assert isinstance(refusal.value, sf.UsageError)
    assert len(refusal.value.args) == 3
    assert remedy in str(refusal.value)
    assert not hasattr(sf, name)
    with pytest.raises(ImportError, match=name):
        exec(f"from sfumato import {name}")


def test_what_is_named_instead_is_not_there_and_can_be_written() -> None:
    names = {"sf": sf, "publisher": None}
    for name, remedy in sf._INSTEAD.items():
        assert name not in sf.__all__
        for written in re.findall(r"sf\.\w+", remedy):
            assert pkgutil.resolve_name(f"sfumato.{written[3:]}") is not None
        line = re.fullmatch(r"Write (sf\.\w+\(.*?\))(?:[,:;] .*)?", remedy)
        if line and "source" not in line[1] and "domain" not in line[1]:
            assert eval(line[1], names) is not None


@pytest.mark.parametrize(
    "code",
    [
        "import sfumato",
        "import sfumato; sfumato.UsageError",
        "from sfumato.cli import cli; cli.main(['--help'], standalone_mode=False)",
    ],
)
def test_nothing_heavy_is_imported_until_it_is_used(code: str) -> None:
    heavy = {"numpy", "scipy", "pyarrow", "matplotlib", "rich", "msgspec", "duckdb"}
    probe = f"{code}\nimport sys; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip().splitlines()[-1] == "[]"


def test_publishing_and_disclosing_need_no_plotting_library() -> None:
    probe = (
        "import sys, numpy as np, sfumato as sf\n"
        "src = sf.source(np.zeros((3, 1)), sf.Domain(x=sf.Interval(0, 1)), name='t')\n"
        "with sf.Publisher(src, budget='1') as pub: pub.release(sf.Histogram('x'), epsilon='1')\n"
        "sf.disclose\n"
        "heavy = {'matplotlib', 'polars', 'duckdb', 'scipy.stats', 'jinja2'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == "[]"
