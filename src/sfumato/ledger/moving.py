"""Moving a ledger from one store to another, and its public part for an auditor.

*Moving*, from a file to a server, or back. Everything moves: entries with their hashes, answers,
and the secrets by which stored answers are found again and streams go on. The old ledger is marked
as moved while nobody can charge it, and pays for nothing afterwards: two copies that are both spent
from would each keep to the whole budget.

*The public part*, for an auditor: what was charged, and what it paid for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sfumato.errors import LedgerError
from sfumato.ledger import stream_record
from sfumato.ledger.book import Book
from sfumato.ledger.entries import OVER, Account, Entry, Spender, Step
from sfumato.ledger.store import MOVED, PublicRows, SecretRows, SecretStore, Store, StreamRow

# The secret value that says that only the store which holds them may be moved to.
COPIED = "public rows copied"

# Stands for the states before the last step, which are gone.
PAST_STATE = b"past"


@dataclass(frozen=True)
class Migrated:
    """What was moved.

    Attributes
    ----------
    entries, streams : int
    """

    entries: int
    streams: int


def migrate(source: Store, target: Store, *, upgraded: bool = False) -> Migrated:
    """Move a ledger, with its secrets, to an empty store.

    The ledger in ``source`` pays for nothing afterwards, and can still be read and verified.

    Parameters
    ----------
    source, target : Store
    upgraded : bool
        Whether the target is made one of the newest format, whether it needs it or not.

    Raises
    ------
    LedgerError
        If ``source`` does not verify, was moved before, or has no secrets; or ``target`` is not
        empty, or is not the store to which a move that was cut off had copied.
    """
    with Book(source) as book:
        verification = book.verify()
        if not verification.ok:
            raise LedgerError(
                source.label,
                str(verification.fault),
                "Restore a copy that verifies, and move that one",
            )
        secrets = source.secrets(create=False)
        try:
            # While this transaction runs, nobody else can charge the old ledger.
            return source.writing(lambda rows: _moved(rows, secrets, target, upgraded=upgraded))
        finally:
            secrets.close()


def _moved(rows: PublicRows, secrets: SecretStore, target: Store, *, upgraded: bool) -> Migrated:
    """Mark the old ledger, then copy it. A move that was cut off goes on where it stopped."""
    entries = list(rows.entries())
    where = secrets.reading(lambda kept: kept.value(MOVED))
    if where is None:
        if target.reading(_is_filled):
            raise LedgerError(
                target.label, "there is a ledger in it", "Name a new file, or an empty database"
            )
        secrets.writing(lambda kept: kept.add_value(MOVED, target.label.encode()))
    elif where != target.label.encode():
        raise LedgerError(
            secrets.label,
            f"it was moved to {where.decode()} before",
            "Move the ledger there instead of this one",
        )
    if target.reading(_is_filled):
        # Another ledger may have filled it meanwhile.
        if target.reading(lambda new: new.identity()) != rows.identity():
            raise LedgerError(
                target.label,
                "there is another ledger in it",
                "Name the store that the move began with",
            )
    elif secrets.reading(lambda kept: kept.value(COPIED)) is not None:
        # The first copy may be spent from, beside which no second one may be.
        raise LedgerError(
            secrets.label,
            "it was copied to another store of this name before",
            "Use the ledger there, or restore it",
        )
    else:
        target.writing(lambda new: _copy_public(rows, new, entries, upgraded=upgraded))
    # Before there are secrets with which the copy could be charged: two stores may have one label,
    # and a second copy would be spent from beside the first.
    secrets.writing(_note_copied)
    new_secrets = target.secrets(create=True)
    try:
        copied = secrets.reading(
            lambda kept: new_secrets.writing(
                lambda new: _copy_secret(kept, new, entries, new_secrets)
            )
        )
        new_secrets.forget()
    finally:
        new_secrets.close()
    # They are in the other store, which wipes its own when it stores an answer. Kept here, whoever
    # reads this store later could take the noise off that answer.
    secrets.writing(_wipe_seeds)
    secrets.forget()
    return Migrated(len(entries), copied)


def _wipe_seeds(kept: SecretRows) -> None:
    for account, key in kept.seeds():
        kept.wipe_seed(account, key)


def _is_filled(rows: PublicRows) -> bool:
    return rows.identity() is not None or rows.highest() > 0


def _note_copied(kept: SecretRows) -> None:
    if kept.value(COPIED) is None:
        kept.add_value(COPIED, b"1")


def _copy_public(
    rows: PublicRows, new: PublicRows, entries: list[Entry], *, upgraded: bool
) -> None:
    """Copy the rows, each after those that it refers to."""
    if upgraded:
        new.extend()
    identity = rows.identity()
    if identity is not None:
        new.set_identity(identity)
    # What composes by sums has no terms.
    terms = rows.terms()
    for name, (rule, total) in rows.totals().items():
        new.add_account(name, rule, total, terms.get(name, ""))
    bindings = rows.bindings()
    ceilings = rows.ceilings()
    ceiling_terms = rows.ceiling_terms()
    for entry in entries:
        new.add(entry)
        # Each beside its entry: what a later charge must keep to is there before it.
        if entry.kind == "bind":
            new.add_binding(entry.account, *bindings[entry.account])
        elif entry.kind == "cap" and not entry.spender:
            data = str(json.loads(entry.note)["data"])
            new.add_ceiling(data, *ceilings[data], ceiling_terms.get(data, ""))
    for sequence, payload in rows.answers():
        new.add_answer(sequence, payload)


def _copy_secret(
    kept: SecretRows, new: SecretRows, entries: list[Entry], store: SecretStore
) -> int:
    streams = kept.streams()
    if new.value("identity") is not None:
        return len(streams)  # all of it was copied before the move was cut off
    for name, value in kept.values().items():
        if name not in (MOVED, COPIED):
            new.add_value(name, value)
    for account, row, derived in kept.names():
        new.keep(account, row, derived=derived)
    for (account, key), seed in kept.seeds().items():
        new.keep_seed(account, key, seed)
    new.add_replaced(kept.all_replaced().items())
    charges = {entry.sequence: entry for entry in entries}
    for stream in streams:
        _copy_stream(kept, new, stream, charges[stream.number], store)
    return len(streams)


def _copy_stream(
    kept: SecretRows, new: SecretRows, stream: StreamRow, charge: Entry, store: SecretStore
) -> None:
    """Copy a stream: its steps, then the state after the last of them."""
    steps: list[Step] = kept.steps(stream.number)
    first = PAST_STATE if steps else stream.at.state
    stream_record.begin(new, charge, stream.spec, first, stream.secret)
    record = stream_record.found(new, charge, store)
    for step in steps[:-1]:
        record.put(new, step, PAST_STATE, tallied=0)
    for step in steps[-1:]:
        over = stream.at.state == OVER
        record.put(new, step, stream.at.state, tallied=0 if over else stream.at.tallied)
    for who, rows in kept.counted(stream.number).items():
        for _ in range(rows):
            new.count(stream.number, who)


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
            steps[str(entry.sequence)] = [
                {
                    "step": step.number,
                    "event": step.event,
                    "output": step.output.decode(),
                    "hash": step.hash,
                }
                for step in stream.since(None)
            ]
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
    plain |= _composed(account)
    if spenders:
        plain["spenders"] = [
            {"name": spender.name, "ceiling": spender.ceiling, "spent": spender.spent}
            | _composed(spender)
            for spender in spenders
        ]
    return plain


def _composed(payer: Account | Spender) -> dict[str, object]:
    # By curves, what is spent is no guarantee: the state is.
    return {"terms": json.loads(payer.terms), "state": payer.state} if payer.terms else {}
