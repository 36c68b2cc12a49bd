"""Hashes tell parts apart, and stay what they were."""

from __future__ import annotations

from sfumato.ledger import entries as chain

LINKED = "68e50156bee5c9a59c5349a480a43581db01cad7770cb680bef575376c13054b"
SEALED = "5c18662cc9a3b404cc028f46803b2d5652c12d00ce5140889a7aa08f6ae69c10"


def test_hashes_tell_parts_apart():
    assert chain.linked("h", 2, 31, "e", b"o") != chain.linked("h", 23, 1, "e", b"o")
    assert chain.linked("h", 2, 3, "ex", b"o") != chain.linked("h", 2, 3, "e", b"xo")
    assert chain.sealed(2, "d", 3, b"s", 11, "h") != chain.sealed(2, "d", 3, b"s1", 1, "h")
    assert chain.sealed(2, "d", 3, b"s", 1, "h") != chain.sealed(2, "d3", 3, b"s", 1, "h")


def test_hashes_stay_what_they_were():
    """Ledgers that exist verify: these were written by the first version with chain."""
    assert chain.linked("ab" * 32, 2, 17, "2013-01-01 \u00e9", b"[12]") == LINKED
    assert chain.sealed(2, "cd" * 32, 17, b"state", 3, "ab" * 32) == SEALED
