"""The one public door: sorted, lazy, complete."""

from __future__ import annotations

import subprocess
import sys

import pytest

import sfumato as sf


def test_the_door_is_sorted_and_every_name_opens() -> None:
    assert sf.__all__ == sorted(sf.__all__)
    for name in sf.__all__:
        assert getattr(sf, name) is not None
    assert dir(sf) == sf.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Histgram'"):
        _ = sf.Histgram


@pytest.mark.parametrize(
    "code",
    ["import sfumato", "import sfumato; sfumato.UsageError", "from sfumato.cli import cli; cli.main(['--help'], standalone_mode=False)"],
)
def test_nothing_heavy_is_imported_until_it_is_used(code: str) -> None:
    probe = f"{code}\nimport sys; print(sorted({{'numpy','scipy','pyarrow','matplotlib','rich','msgspec','duckdb'}} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert out.strip().splitlines()[-1] == "[]"


def test_publishing_needs_no_plotting_library() -> None:
    probe = (
        "import sys, numpy as np, sfumato as sf\n"
        "src = sf.source(np.zeros((3, 1)), sf.Domain(x=sf.Interval(0, 1)), name='t')\n"
        "with sf.Publisher(src, budget='1') as pub: pub.release(sf.Histogram('x'), epsilon='1')\n"
        "print(sorted({'matplotlib', 'polars', 'duckdb', 'scipy.stats', 'jinja2'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
