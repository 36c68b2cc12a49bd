"""How entries and steps are hashed into chains, and what the notes of entries say.

Each hash covers the hash before it, so that nothing can be edited, removed or moved without
changing every hash after it. The forms of what is hashed must not change: every ledger that was
ever written is checked by them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json

from sfumato.ledger.entries import NOTHING, Amount, Entry

SPENDERS = ("spender", "own")
HASHED = tuple(field.name for field in dataclasses.fields(Entry))
FIELDS = tuple(name for name in HASHED if name not in ("hash", *SPENDERS))
# ASCII without blanks: one text for one list of fields, whatever the language of the machine.
# `default` lets an edited file, which may hold anything, be hashed and reported, and not fail.
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=repr).encode

# --- entries --------------------------------------------------------------------------------------


def payload_digest(payload: bytes) -> str:
    """The hash under which an answer is entered."""
    return hashlib.sha256(payload).hexdigest()


def link(*fields: object) -> str:
    """The hash of an entry: SHA-256 of all its other fields in order, as one JSON array in ASCII.

    The hash of the entry before is one of these fields.
    """
    return hashlib.sha256(_encode(["sfumato-ledger-1", *fields]).encode("ascii")).hexdigest()


def fields(entry: Entry) -> tuple[object, ...]:
    """All fields of an entry but its own hash; the last two only where it has a spender."""
    # Entries without a spender are hashed as they were before there were spenders.
    names = (*FIELDS, *SPENDERS) if entry.spender else FIELDS
    return tuple(getattr(entry, name) for name in names)


def opening(rule: str, total: Amount) -> str:
    """The note of the entry that opens an account, so that the chain covers rule and total."""
    return json.dumps({"rule": rule, "total": list(total)}, ensure_ascii=True)


def binding(protects: str, data: str) -> str:
    """The note of the entry that binds an account."""
    return json.dumps({"protects": protects, "data": data}, ensure_ascii=True)


def capping(data: str, rule: str, amount: Amount) -> str:
    """The note of the entry that sets a data set's ceiling."""
    said = {"data": data, "rule": rule, "ceiling": list(amount)}
    return json.dumps(said, ensure_ascii=True)


def capping_spender(rule: str, amount: Amount) -> str:
    """The note of the entry that sets a spender's ceiling; the entry names the spender."""
    return json.dumps({"rule": rule, "ceiling": list(amount)}, ensure_ascii=True)


def ceiling_of(note: str) -> Amount:
    """The ceiling that a note sets; nothing where it was edited and sets none."""
    try:
        first, second = json.loads(note)["ceiling"]
        return int(first), int(second)
    except (ValueError, TypeError, KeyError):
        return NOTHING


# --- streams --------------------------------------------------------------------------------------


def linked(previous: str, stream: int, step: int, event: str, output: bytes) -> str:
    """The hash of a step, over its parts, each with its length in bytes before it.

    ``previous`` is the hash of the step before; for the first step, that of the charge.
    """
    # With the lengths, no two lists of parts give the same bytes.
    whose = str(stream)
    at = str(step)
    name = event.encode("utf-8", "surrogatepass")
    start = f"4:step{len(previous)}:{previous}{len(whose)}:{whose}{len(at)}:{at}"
    before = f"{start}{len(name)}:{event}{len(output)}:"
    return hashlib.sha256(before.encode("utf-8", "surrogatepass") + output).hexdigest()


def opened(spec: bytes, secret: bytes) -> str:
    """The hash of what a stream was opened with; without the secret once that is wiped."""
    public = payload_digest(spec)
    return payload_digest(public.encode() + secret) if secret else public


def sealed(stream: int, spec_digest: str, step: int, state: bytes, tallied: int, head: str) -> str:
    """The hash of a stream's own row: how far it has come, and with which state.

    A step is committed only to a row with the seal that the step was computed from.
    """
    whose = str(stream)
    at = str(step)
    count = str(tallied)
    start = f"6:stream{len(whose)}:{whose}{len(spec_digest)}:{spec_digest}"
    before = f"{start}{len(at)}:{at}{len(state)}:"
    after = f"{len(count)}:{count}{len(head)}:{head}"
    return hashlib.sha256(before.encode() + state + after.encode()).hexdigest()
