"""Releases that several tests disclose."""

import pytest

from reports.disclosure import visits


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a ledger."""
    return tmp_path_factory.mktemp("visits")


@pytest.fixture(scope="session")
def releases(folder):
    """Three answers of a plan, and one more, of one account."""
    return visits.published(folder)


@pytest.fixture(scope="session")
def ledger(folder, releases):
    """The ledger that was charged for them."""
    assert releases
    return folder / "b.db"
