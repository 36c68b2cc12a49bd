"""Whether a process has surely ended; every doubt counts as no."""

from __future__ import annotations

import os

import pytest

from sfumato.basics import processes as process_identity


@pytest.mark.skipif(
    not process_identity.current(), reason="this system does not tell which processes run"
)
def test_in_doubt_a_holder_has_not_ended():
    place, number, started = process_identity.current().rsplit("/", 2)
    assert not process_identity.ended(process_identity.current())
    assert process_identity.ended(f"{place}/{number}/1{started}")
    assert process_identity.ended(f"{place}/{2**22 + 1}/{started}")
    for doubtful in (
        "",
        "x",
        f"elsewhere/{number}/1",
        f"{place}/many/{started}",
        f"{place}/1/{process_identity._started(1)}",
    ):
        assert not process_identity.ended(doubtful)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_does_not_take_the_identity_of_an_ancestor_of_its_number():
    process_identity.current()
    assert process_identity._identity.cache_info().currsize
    child = os.fork()
    if child == 0:
        os._exit(process_identity._identity.cache_info().currsize)
    assert os.waitpid(child, 0)[1] == 0
