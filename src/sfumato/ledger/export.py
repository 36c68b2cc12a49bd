"""The public part of a ledger, for an auditor: nothing in it but what was paid for, and how."""

from __future__ import annotations

from typing import Any

from sfumato.ledger.ledger import Ledger

FORMAT = "sfumato ledger, public part"
VERSION = 1


def exported(ledger: Ledger) -> dict[str, Any]:
    """Accounts, entries, stored answers and the published steps of streams, as plain values.

    Each answer is the text that was stored, so that its hash can be compared with its entry. The secrets of the ledger
    are no part of it: an auditor learns from it what readers of the releases know, and what was charged.
    """
    entries = list(ledger.log())
    charges = [entry.sequence for entry in entries if entry.kind == "reserve"]
    answers = {number: ledger.answer(number) for number in charges}
    streams = {number: ledger.steps(number) for number in charges}
    return {
        "format": FORMAT,
        "version": VERSION,
        "accounts": [
            {
                "name": account.name,
                "rule": account.rule,
                "total": account.total,
                "spent": account.spent,
                "protects": account.protects,
                "data": account.data,
            }
            for account in ledger.accounts()
        ],
        "entries": [{name: getattr(entry, name) for name in entry.__slots__} for entry in entries],
        "answers": {str(number): answer.decode() for number, answer in answers.items() if answer is not None},
        "steps": {
            str(number): [{"step": s.number, "event": s.event, "output": s.output.decode(), "hash": s.hash} for s in stream.since(None)]
            for number, stream in streams.items()
            if stream is not None
        },
        "signer": ledger.signer(),
    }
