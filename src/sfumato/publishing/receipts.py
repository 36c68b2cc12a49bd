"""Receipts and signatures: what proves that a release was paid for."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from sfumato._version import __version__
from sfumato.answers.loading import signed_part
from sfumato.answers.receipt import Receipt
from sfumato.answers.release import Release
from sfumato.ledger import Entry, Ledger

R = TypeVar("R", bound=Release)


def receipt_of(
    entry: Entry,
    charged: str,
    source: str,
    part: str = "1 of 1",
    picked: str = "",
    named: str = "",
) -> Receipt:
    """Return what proves a charge: the ledger entry that paid, and what it paid for."""
    return Receipt(
        account=entry.account,
        key=entry.key,
        digest=entry.digest,
        entry=entry.sequence,
        entry_hash=entry.hash,
        time=entry.time,
        charged=charged,
        part=part,
        source=source,
        version=__version__,
        picked=picked,
        named=named,
    )


def signed(release: R, ledger: Ledger) -> R:
    """Return the release with the ledger's signature, or with none if it cannot sign.

    The ledger has no key, or the caller may not use it. A signature of before would be false then:
    the release has other words.
    """
    signer = ledger.signer()
    if release.receipt is None:
        return release
    if signer is None:
        if not release.receipt.signer:
            return release
        receipt = msgspec.structs.replace(release.receipt, signer="", signature="")
        return msgspec.structs.replace(release, receipt=receipt)
    # The signature covers the signer's name, which therefore goes into the receipt first.
    receipt = msgspec.structs.replace(release.receipt, signer=signer)
    message = signed_part(msgspec.structs.replace(release, receipt=receipt))
    receipt = msgspec.structs.replace(receipt, signature=ledger.sign(message))
    return msgspec.structs.replace(release, receipt=receipt)
