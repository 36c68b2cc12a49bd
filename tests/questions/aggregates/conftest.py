"""A publisher of the wards."""

from __future__ import annotations

import pytest

import sfumato as sf
from questions.aggregates.wards import DOMAIN, TABLE


@pytest.fixture
def publisher() -> sf.Publisher:
    source = sf.source(TABLE, DOMAIN, name="wards")
    return sf.Publisher(source, budget=10**7)
