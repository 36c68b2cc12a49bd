"""The public part of a ledger, for an auditor: what was charged, and what it paid for."""

from __future__ import annotations

from sfumato.ledger.book import Book
from sfumato.ledger.entries import Account, Spender, Step

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
    answers: dict[str, str] = {}
    steps: dict[str, list[dict[str, object]]] = {}
    for entry in entries:
        if entry.kind != "reserve":
            continue
        answer = ledger.answer(entry.sequence)
        if answer is not None:
            answers[str(entry.sequence)] = answer.decode()
        stream = ledger.steps(entry.sequence)
        if stream is not None:
            steps[str(entry.sequence)] = [_step(step) for step in stream.since(None)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "accounts": [
            _account(account, ledger.spenders(account.name)) for account in ledger.accounts()
        ],
        "entries": [entry.plain() for entry in entries],
        "answers": answers,
        "steps": steps,
        "signer": ledger.signer(),
    }


def _account(account: Account, spenders: list[Spender]) -> dict[str, object]:
    plain: dict[str, object] = {
        "name": account.name,
        "rule": account.rule,
        "total": account.total,
        "spent": account.spent,
        "protects": account.protects,
        "data": account.data,
    }
    if spenders:
        plain["spenders"] = [
            {"name": each.name, "ceiling": each.ceiling, "spent": each.spent} for each in spenders
        ]
    return plain


def _step(step: Step) -> dict[str, object]:
    return {
        "step": step.number,
        "event": step.event,
        "output": step.output.decode(),
        "hash": step.hash,
    }
