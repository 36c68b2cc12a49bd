"""What is known of where a release comes from: its signature."""

from __future__ import annotations

import msgspec

from sfumato.answers.codec import to_bytes
from sfumato.answers.release import Release
from sfumato.basics.signing import valid


def signed_part(release: Release) -> bytes:
    """The bytes that a signature covers: the release with its signature left out."""
    receipt = release.receipt
    if receipt is None:
        return to_bytes(release)
    unsigned = msgspec.structs.replace(receipt, signature="")
    return to_bytes(msgspec.structs.replace(release, receipt=unsigned))


def standing(release: Release) -> str:
    """What a page may say of a release's origin: "" for one that was just published."""
    receipt = release.receipt
    if not release.loaded:
        return ""
    if receipt is None or not receipt.signature:
        return "not verified: read from a file, and not signed"
    if not valid(receipt.signer, receipt.signature, signed_part(release)):
        return "not verified: its signature does not match"
    return f"signed with the key {receipt.signer}: compare it with the custodian's"
