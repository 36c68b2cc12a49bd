"""The public part of a ledger, for an auditor: what was charged, and what it paid for."""

from __future__ import annotations

import dataclasses

from sfumato.ledger.book import Book
from sfumato.ledger.entries import Account, Step

FORMAT = "sfumato ledger, public part"
VERSION = 1


def exported(ledger: Book) -> dict[str, object]:
    """Accounts, entries, stored answers and the published steps of streams, as plain values.

    Nothing from the secrets is among them but the public key: an auditor learns what was charged,
    and otherwise only what readers of the releases know.

    Parameters
    ----------
    ledger : Book

    Returns
    -------
    dict
        Ready for JSON. Each answer is the text that was stored, so that its hash can be compared
        with its entry.
    """
    entries = list(ledger.log())
    charges = [entry.sequence for entry in entries if entry.kind == "reserve"]
    answers = {str(number): ledger.answer(number) for number in charges}
    streams = {str(number): ledger.steps(number) for number in charges}
    steps = {number: stream.since(None) for number, stream in streams.items() if stream is not None}
    return {
        "format": FORMAT,
        "version": VERSION,
        "accounts": [_account(account) for account in ledger.accounts()],
        "entries": [dataclasses.asdict(entry) for entry in entries],
        "answers": {number: text.decode() for number, text in answers.items() if text is not None},
        "steps": {number: [_step(step) for step in taken] for number, taken in steps.items()},
        "signer": ledger.signer(),
    }


def _account(account: Account) -> dict[str, object]:
    return {
        "name": account.name,
        "rule": account.rule,
        "total": account.total,
        "spent": account.spent,
        "protects": account.protects,
        "data": account.data,
    }


def _step(step: Step) -> dict[str, object]:
    return {
        "step": step.number,
        "event": step.event,
        "output": step.output.decode(),
        "hash": step.hash,
    }
