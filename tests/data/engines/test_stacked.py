"""Engines keep of each person what a norm of several tables allows."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.kinds import KINDS, table
from data.engines.test_query import ENGINES
from sfumato.privacy.stacked_norm import StackedNorm, Weighed
from support import spark_jobs
from support.norms import LEVELS, ROWS, all_counted, kept_of_each, norm_of, share_kept

TRIED = {"most": norm_of(150, 100), "more": norm_of(220, 100), "rows": norm_of(10**6, 7)}
"""Persons have 13 rows on average."""


@pytest.fixture(scope="module", params=ENGINES)
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return KINDS[request.param](ROWS, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("limit", TRIED)
def test_what_an_engine_keeps_of_each_person_is_within_the_norm(held: Any, limit: str) -> None:
    """Other rows are kept under another secret and by another engine; about as many of them."""
    kept_of_each(held, TRIED[limit])
    own, scan = (share_kept(data, TRIED[limit], 1) for data in (held, table(ROWS)))
    assert min(own, scan) > 0.3
    assert max(own, scan) < 0.98
    assert abs(own - scan) < 0.03


def test_weights_at_the_end_of_64_bits_do_not_overflow(held: Any) -> None:
    """The sums of persons with more than seven rows would pass 2^63."""
    weight = 2**57
    limit = StackedNorm(LEVELS, (Weighed((0, 0), weight),), 4 * weight + 1, 20)
    kept = kept_of_each(held, limit)
    every = {who: int(own.sum()) for who, own in all_counted().items()}
    assert kept == {who: min(2, rows) for who, rows in every.items()}
    assert max(every.values()) > 8


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_spark_keeps_the_norm(kind: str) -> None:
    own = spark_jobs.run("norms", kind)
    for limit, share in own.items():
        scan = share_kept(table(ROWS), norm_of(int(limit), 100), 1)
        assert abs(share - scan) < 0.03
