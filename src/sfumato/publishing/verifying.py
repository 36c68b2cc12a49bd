"""Whether a release that someone holds is the one that was published, and by whom it was.

The custodian compares it with the ledger. A reader without the ledger checks its signature.

``Publication`` holds what only a person knows of a publication: who publishes, for what use, and
where. It is text for a disclosure document. It changes neither cells nor noise nor price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from sfumato.answers import Receipt, Release, signed_part, stored_releases, with_receipt
from sfumato.basics import to_bytes, valid
from sfumato.errors import UsageError, nearest, shown
from sfumato.ledger import LARGEST, Ledger
from sfumato.privacy import counted_rows, with_person_called
from sfumato.publishing.account import as_of_its_day
from sfumato.publishing.stream import history, opening_of
from sfumato.questions.counters.release import CounterRelease

# --- is it the same? ------------------------------------------------------------------------------


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
    from_before_upgrade = receipt.entry_hash == ledger.was(number)
    stored = _stored(release, receipt, ledger)
    if stored is None:
        return Verdict(False, f"The ledger has no such answer under entry {number}.")
    if from_before_upgrade:
        release = _with_new_names(release, stored)
    # The same numbers may have been asked for in another order of their axes.
    stored = stored.arranged(release.layout)
    if receipt.as_of:
        stored = as_of_its_day(stored)
    if to_bytes(stored) != to_bytes(release):
        return _differing(release, receipt, stored, ledger)
    if from_before_upgrade:
        return Verdict(
            True,
            f"It is the answer stored under entry {number}. Its receipt is of version 0.1, and "
            "gives the size of the data file away: publish the stored answer instead.",
        )
    return Verdict(True, f"It is the answer stored under entry {number}, charged {receipt.moment}.")


def _numbers(release: Release) -> bytes:
    """A release without its words for people, and without the signature that covers them."""
    return to_bytes(
        with_receipt(
            msgspec.structs.replace(release, captions=msgspec.UNSET), signature="", signer=""
        )
    )


def _differing(release: Release, receipt: Receipt, stored: Release, ledger: Ledger) -> Verdict:
    """Judge a release that is not, byte for byte, the one that is stored.

    It may be the same answer under another heading, or under other units or names of labels. The
    ledger does not keep the words of an answer that is shown again under others, so only its
    signature can vouch for them: an edited name of a label would swap two rows.
    """
    stored = with_person_called(stored, release.guarantee.unit.person_called)
    if _numbers(stored) != _numbers(release):
        return Verdict(
            False, f"It differs from the answer that is stored under entry {receipt.entry}."
        )
    entry = f"the answer stored under entry {receipt.entry}"
    own = receipt.signer and receipt.signer == ledger.signer()
    if own and valid(receipt.signer, receipt.signature, signed_part(release)):
        return Verdict(True, f"It is {entry}, charged {receipt.moment}, under words of its own.")
    return Verdict(
        False,
        f"Its numbers are {entry}, but its heading, units or names are not those that are stored. "
        "Ask again with these words, from a ledger with a key: its signature covers them.",
    )


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
    steps_so_far = history(
        opening_of(steps), steps.entry, steps.since(None)[: len(release.outputs)]
    )
    before = steps_so_far.settled.counted_by_column
    if release.guarantee.counted == before:
        guarantee = msgspec.structs.replace(steps_so_far.guarantee, counted=before)
        steps_so_far = msgspec.structs.replace(steps_so_far, guarantee=guarantee)
    steps_so_far = with_receipt(steps_so_far, version=receipt.version)
    # A history is made from the steps whenever it is asked for, so no signature of it is stored. It
    # counts only if it is valid under the ledger's own key; else the two will differ.
    signer = ledger.signer() if receipt.signer else None
    if signer == receipt.signer and valid(receipt.signer, receipt.signature, signed_part(release)):
        steps_so_far = with_receipt(
            steps_so_far, signature=receipt.signature, signer=receipt.signer
        )
    return steps_so_far


def _with_new_names(release: Release, stored: Release) -> Release:
    """Return a release of version 0.1 with what an upgrade gave it: key, digest, hash and words."""
    now = stored.receipt
    if now is None:
        return release
    guarantee = release.guarantee
    # A file of 0.1 does not say which rows are counted; so it was read in the words of today.
    if guarantee.counted == counted_rows(guarantee.unit):
        guarantee = msgspec.structs.replace(guarantee, counted=stored.guarantee.counted)
    release = with_receipt(release, key=now.key, digest=now.digest, entry_hash=now.entry_hash)
    return msgspec.structs.replace(release, guarantee=guarantee)


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


# --- what only a person knows ---------------------------------------------------------------------

# Characters of one text.
LONGEST = 10_000

# The fields of a disclosure document to which a person may add: they are filled without one.
Note = Literal[
    "data_domain",
    "unprotected_quantities",
    "privacy_unit_description",
    "privacy_parameters_description",
    "model_name_description",
    "actors",
    "release_type_description",
    "data_source_type_description",
    "access_type_description",
    "post_processing",
    "composition",
    "pre_processing_eda_hyperparameter_tuning",
    "mechanisms",
    "justification",
]


class Publication(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """``[publication]``: the facts of a disclosure document that no release knows.

    The names of its fields are those of the registry of deployments. All of them are public.

    Parameters
    ----------
    name : str or None
        What the published data are called; None: it follows from the data's name.
    data_curators : str or list of str
        The organisations that hold the data and publish.
    intended_use, data_product_region, data_product_sector : str or None
        What the data are published for; which part of the world they are about; the sector.
    description : str or None
        What was published; None: the titles of the answers.
    release_type : {"One release", "Many releases"} or None
        None: it follows from the number of charges.
    data_source_type : {"Static", "Dynamic"} or None
        Whether the data grow while they are published; None: "Dynamic" for a stream.
    auditing : str or None
        Who examined the deployment, and what was found.
    sources : str or list of str
        Links to papers, code and data.
    registry_authors : str or list of str
        Who answers for the document.
    notes : dict
        Sentences to add to fields that are filled without a hand, by the name of the field.

    Raises
    ------
    UsageError
        If a text is empty or longer than 10,000 characters, a choice is none of those listed, or a
        note is for a field to which none can be added.
    """

    name: str | None = None
    data_curators: str | tuple[str, ...] = ()
    intended_use: str | None = None
    data_product_region: str | None = None
    data_product_sector: str | None = None
    description: str | None = None
    release_type: Literal["One release", "Many releases"] | None = None
    data_source_type: Literal["Static", "Dynamic"] | None = None
    auditing: str | None = None
    sources: str | tuple[str, ...] = ()
    registry_authors: str | tuple[str, ...] = ()
    notes: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            stated = getattr(self, name)
            if isinstance(stated, Mapping):
                stated = list(stated.values())
            if stated is None:
                continue
            for text in stated if isinstance(stated, tuple | list) else (stated,):
                _require_text(name, text)
        for name in self.notes:
            if name not in get_args(Note):
                raise UsageError(
                    f"notes, {shown(name)}",
                    f"no note can be added there; {nearest(name, get_args(Note))}",
                    "Correct the name",
                )


def listed(given: str | Sequence[str]) -> tuple[str, ...]:
    """One text or several, as several.

    >>> listed("Wikimedia Foundation")
    ('Wikimedia Foundation',)
    """
    return (given,) if isinstance(given, str) else tuple(given)


def _require_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise UsageError(f"{name} = {shown(text)}", "it is no text", f'Write {name} = "..."')
    if not text.strip():
        raise UsageError(
            f"{name} = {shown(text)}",
            "the text is empty",
            "Write it, or leave the field out: the document then says what to write",
        )
    if len(text) > LONGEST:
        raise UsageError(
            name,
            f"it has {len(text):,} characters, and the limit is {LONGEST:,}",
            "Shorten it, and give a link in sources",
        )
