"""``sfumato ledger``: open accounts, and read and verify what was spent."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sfumato.cli.options import json_option, ledger_option
from sfumato.cli.output import emit_json, table, talk
from sfumato.errors import LedgerError, UsageError
from sfumato.exact import fraction
from sfumato.ledger import Account, Entry, open_ledger
from sfumato.ledger.ledger import written
from sfumato.privacy.composition import rule_of
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP, total_of


@click.group()
def ledger() -> None:
    """Open accounts, and read and verify what was spent."""


@ledger.command()
@click.argument("account")
@click.option("--epsilon", help="Total epsilon.")
@click.option("--delta", default="0", show_default=True, help="Total delta.")
@click.option("--rho", help="Total rho, for an account in zero-concentrated privacy.")
@ledger_option
@json_option
def init(account: str, epsilon: str | None, delta: str, rho: str | None, ledger: Path, as_json: bool) -> None:
    """Open ACCOUNT with a total, or check that it exists with exactly that total."""
    total = _total(epsilon, delta, rho)
    with open_ledger(ledger) as book:
        opened = book.open_account(account, rule_of(total), total_of(total))
    _show([opened], as_json)


@ledger.command()
@ledger_option
@json_option
def show(ledger: Path, as_json: bool) -> None:
    """List accounts: total, spent, remaining."""
    with open_ledger(ledger, create=False) as book:
        _show(book.accounts(), as_json)


@ledger.command()
@click.option("--account", help="Only this account.")
@ledger_option
@json_option
def log(account: str | None, ledger: Path, as_json: bool) -> None:
    """List the entries in order."""
    with open_ledger(ledger, create=False) as book:
        entries, rules = list(book.log(account)), {found.name: found.rule for found in book.accounts()}
    if as_json:
        emit_json([{name: getattr(entry, name) for name in entry.__slots__} for entry in entries])
        return
    rows = [(e.sequence, e.time[:16].replace("T", " "), e.account, e.kind, *_said(e, rules[e.account])) for e in entries]
    table(["entry", "time (UTC)", "account", "kind", "cost", "note"], rows)


@ledger.command()
@click.option("--head", help="SEQUENCE:HASH of an entry known from a receipt or an earlier check.")
@ledger_option
@json_option
def verify(head: str | None, ledger: Path, as_json: bool) -> None:
    """Recompute the whole ledger and compare. Exit code 5 if anything does not follow."""
    with open_ledger(ledger, create=False) as book:
        found = book.verify(_head(head))
    if as_json:
        emit_json({"ok": found.ok, "entries": found.entries, "head": list(found.head), "faults": list(found.faults)})
    elif found.ok:
        click.echo(f"{found.entries} entries, all in order. Head: {found.head[0]}:{found.head[1]}")
        talk("Keep the head elsewhere: against a rewritten history only an outside copy helps.")
    if not found.ok:
        raise LedgerError(f"verifying {ledger}", str(found.fault), "Restore a copy that verifies; do not publish from this one")


def _said(entry: Entry, rule: str) -> tuple[str, str]:
    """Cost and note of an entry for people; an account's opening states its total."""
    if entry.kind == "open":
        return "", f"total {written(rule, tuple(json.loads(entry.note)['total']))}"
    return written(rule, entry.cost) if any(entry.cost) else "", entry.note


def _total(epsilon: str | None, delta: str, rho: str | None) -> CentralMeasure:
    if (epsilon is None) == (rho is None):
        raise UsageError("the account's total", "give --epsilon or --rho, and not both", "Write --epsilon 3")
    if rho is not None:
        if fraction(delta, "delta"):
            raise UsageError("--rho with --delta", "zero-concentrated privacy has no delta", "Leave --delta out")
        return ZCDP(rho)
    return ApproxDP(epsilon, delta) if fraction(delta, "delta") else PureDP(epsilon)


def _head(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    sequence, colon, digest = text.partition(":")
    if not colon or not sequence.isdecimal() or len(sequence) > 18:
        raise UsageError(f"--head {text}", "a head is a sequence number and a hash", "Write --head 12:3f9a...")
    return int(sequence), digest


def _show(accounts: list[Account], as_json: bool) -> None:
    if as_json:
        emit_json([{"name": a.name, "rule": a.rule, "total": a.total, "spent": a.spent, "remaining": a.remaining} for a in accounts])
        return
    rows = [(a.name, *(written(a.rule, amount) for amount in (a.total, a.spent, a.remaining))) for a in accounts]
    table(["account", "total", "spent", "remaining"], rows)
