"""Many releases of the same table of ages and kinds."""

from __future__ import annotations

import pytest

import sfumato as sf
from questions.histogram.ages import CUBE, QUESTION, RUNS
from sfumato.random import PublicSeed


@pytest.fixture(scope="module", params=[sf.PureDP("0.2"), sf.ZCDP("0.005")], ids=str)
def releases(request: pytest.FixtureRequest) -> list[sf.HistogramRelease]:
    noise = PublicSeed(f"moments {request.param}")
    return [QUESTION.answer(CUBE, sf.Unit(), request.param, noise) for _ in range(RUNS)]
