"""Whether a release that someone holds is the one that was published.

The custodian compares it with the ledger. A reader without the ledger checks its signature.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from sfumato.answers.codec import to_bytes
from sfumato.answers.loading import signed_part, stored_releases
from sfumato.answers.receipt import Receipt
from sfumato.answers.release import Release
from sfumato.basics.signing import valid
from sfumato.errors import UsageError
from sfumato.ledger import LARGEST, Ledger
from sfumato.publishing.history import history_of
from sfumato.questions.counters.release import CounterRelease


@dataclass(frozen=True)
class Verdict:
    """What a check of one release found.

    Attributes
    ----------
    ok : bool
        Whether the release is the one that was published.
    reason : str
        Why, as a sentence.
    """

    ok: bool
    reason: str


def verify(release: Release, ledger: Ledger) -> Verdict:
    """Compare a release with what the ledger stored when it was published.

    Parameters
    ----------
    release : Release
        As it was loaded. All of it is compared, byte by byte.
    ledger : Ledger
        The ledger that was charged for it.

    Returns
    -------
    Verdict

    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.zeros((3, 1)), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> publisher = sf.Publisher(src, budget="1")
    >>> verify(publisher.release(sf.Histogram("x"), epsilon="1"), publisher.ledger).ok
    True
    """
    receipt = release.receipt
    if receipt is None:
        return Verdict(False, "It has no receipt, so nothing says which charge paid for it.")
    number = receipt.entry
    if not 1 <= number <= LARGEST:
        return Verdict(False, "Its receipt names an entry that no ledger has.")
    hash_before_upgrade = ledger.was(number)
    from_before_upgrade = receipt.entry_hash == hash_before_upgrade
    stored = _stored(release, receipt, ledger)
    if stored is None:
        return Verdict(False, f"The ledger has no such answer under entry {number}.")
    if from_before_upgrade:
        release = _with_new_names(release, receipt, stored.receipt)
    # The same numbers may have been asked for in another order of their axes.
    stored = stored.arranged(release.layout)
    if to_bytes(stored) != to_bytes(release):
        return _differing(release, receipt, stored, ledger)
    if from_before_upgrade:
        gives_away = "Its receipt is of version 0.1, and gives the size of the data file away"
        advice = f"{gives_away}: publish the stored answer instead."
        return Verdict(True, f"It is the answer stored under entry {number}. {advice}")
    return Verdict(True, f"It is the answer stored under entry {number}, charged {receipt.time}.")


def _numbers(release: Release) -> bytes:
    """A release without its words for people, and without the signature that covers them."""
    bare = msgspec.structs.replace(release, captions=msgspec.UNSET)
    receipt = bare.receipt
    if receipt is not None:
        unsigned = msgspec.structs.replace(receipt, signature="", signer="")
        bare = msgspec.structs.replace(bare, receipt=unsigned)
    return to_bytes(bare)


def _differing(release: Release, receipt: Receipt, stored: Release, ledger: Ledger) -> Verdict:
    """Judge a release that is not, byte for byte, the one that is stored.

    It may be the same answer under another heading, or under other units or names of labels. The
    ledger does not keep the words of an answer that is shown again under others, so only its
    signature can vouch for them: an edited name of a label would swap two rows.
    """
    if _numbers(stored) != _numbers(release):
        other = f"It differs from the answer that is stored under entry {receipt.entry}."
        return Verdict(False, other)
    entry = f"the answer stored under entry {receipt.entry}"
    own = receipt.signer and receipt.signer == ledger.signer()
    if own and valid(receipt.signer, receipt.signature, signed_part(release)):
        return Verdict(True, f"It is {entry}, charged {receipt.time}, under words of its own.")
    differs = "but its heading, units or names of labels are not those that are stored"
    advice = "Ask again with these words, from a ledger with a key: its signature covers them."
    return Verdict(False, f"Its numbers are {entry}, {differs}. {advice}")


def _stored(release: Release, receipt: Receipt, ledger: Ledger) -> Release | None:
    """What the ledger has where a receipt says that the release is; None where it has nothing."""
    if isinstance(release, CounterRelease):
        return _stream(release, receipt, ledger)
    payload = ledger.answer(receipt.entry)
    if payload is None or not payload.startswith(b"["):
        return None
    answers = stored_releases(payload)
    # Such as "2 of 3". The receipt may have been edited, so this may be any text.
    number = receipt.part.partition(" ")[0]
    index = int(number) - 1 if number.isdecimal() and len(number) < 10 else -1
    return answers[index] if 0 <= index < len(answers) else None


def _stream(release: CounterRelease, receipt: Receipt, ledger: Ledger) -> Release | None:
    """As many steps of a stream as the release has, from the ledger.

    They carry the release's own signature, if it is one of this ledger's.
    """
    steps = ledger.steps(receipt.entry)
    if steps is None:
        return None
    found = history_of(steps, len(release.outputs))
    if found.receipt is None:
        return found
    mine = msgspec.structs.replace(found.receipt, version=receipt.version)
    # A history is made from the steps whenever it is asked for, so no signature of it is stored. It
    # counts only if it is valid under the ledger's own key; else the two will differ.
    signer = ledger.signer() if receipt.signer else None
    if signer == receipt.signer and valid(receipt.signer, receipt.signature, signed_part(release)):
        mine = msgspec.structs.replace(mine, signature=receipt.signature, signer=receipt.signer)
    return msgspec.structs.replace(found, receipt=mine)


def _with_new_names(release: Release, receipt: Receipt, now: Receipt | None) -> Release:
    """A release of version 0.1, with the key, digest and hash that an upgrade gave its receipt."""
    if now is None:
        return release
    renamed = msgspec.structs.replace(
        receipt, key=now.key, digest=now.digest, entry_hash=now.entry_hash
    )
    return msgspec.structs.replace(release, receipt=renamed)


def verify_signature(release: Release, signer: str) -> Verdict:
    """Check a release against the custodian's public key, without the ledger.

    Parameters
    ----------
    release : Release
    signer : str
        The public key, 64 hexadecimal digits, as ``sfumato ledger key`` prints it. Take it from the
        custodian, not from the release: whoever edits a release may sign it with another key.

    Returns
    -------
    Verdict

    Raises
    ------
    UsageError
        If the key is not 64 hexadecimal digits.
    """
    if len(signer) != 64 or not set(signer) <= set("0123456789abcdef"):
        raise UsageError(
            "checking a signature",
            "a public key is 64 hexadecimal digits",
            "Give the key that `sfumato ledger key` printed",
        )
    receipt = release.receipt
    if receipt is None or not receipt.signature:
        return Verdict(False, "It is not signed.")
    if receipt.signer != signer:
        return Verdict(False, "It is signed with another key.")
    if not valid(signer, receipt.signature, signed_part(release)):
        return Verdict(False, "It does not match its signature: it was edited.")
    return Verdict(True, "It is signed with this key, and was not edited.")
