"""Pictures are found by name, as no floor below them imports them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

import sfumato
from sfumato.answers import pictures
from sfumato.charts import style

ROOT = Path(sfumato.__file__).parent
NAMED = re.compile(r'\bdrawn(?:_panels)?\(\s*f?"([\w{}.]+)"')
KINDS = sorted(
    {
        kind
        for path in ROOT.rglob("*.py")
        for written in NAMED.findall(path.read_text(encoding="utf-8"))
        for kind in ([written] if "{" not in written else ["histograms.draw", "cumulative.draw"])
    }
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_that_is_named_is_there(kind):
    """It takes what is drawn, and the Axes."""
    _, ax, *_ = inspect.signature(resolve_name(f"sfumato.charts.{kind}")).parameters
    assert ax == "ax"


def test_every_picture_is_named():
    """Nothing that draws is left that nobody asks for."""
    files = (ROOT / "charts").glob("*.py")
    drawing = {
        f"{path.stem}.{name}"
        for path in files
        for name in re.findall(r"@style\.\w+(?:\(\))?\ndef (\w+)", path.read_text(encoding="utf-8"))
    }
    assert drawing <= set(KINDS)
    assert len(drawing) > 12


def test_a_kind_that_is_not_there_is_an_error():
    _, ax = style.figure(100)
    with pytest.raises((ImportError, AttributeError)):
        pictures.drawn("nowhere.draw", object(), ax)
