"""``sfumato ledger``: open accounts, and read and verify what was spent."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from sfumato.cli.options import charged_option, json_option, ledger_option, opened
from sfumato.cli.output import emit_json, plain_json, say, table, talk
from sfumato.cli.targets import NewFile, write_text
from sfumato.errors import LedgerError, UsageError
from sfumato.ledger import Account, Entry, open_ledger, written
from sfumato.ledger.export import exported
from sfumato.privacy.composition import rule_of
from sfumato.privacy.measures import measure_of, total_of


@click.group()
def ledger() -> None:
    """Open accounts, and read and verify what was spent."""


@ledger.command()
@click.argument("account")
@click.option("--epsilon", help="Total epsilon.")
@click.option("--delta", default="0", show_default=True, help="Total delta.")
@click.option("--rho", help="Total rho, for an account in zero-concentrated privacy.")
@charged_option
@json_option
def init(
    account: str, epsilon: str | None, delta: str, rho: str | None, ledger: Path, as_json: bool
) -> None:
    """Open ACCOUNT with a total, or check that it exists with exactly that total."""
    total = measure_of("the account's total", epsilon=epsilon, delta=delta, rho=rho, prefix="--")
    with opened(ledger) as book:
        found = book.open_account(account, rule_of(total), total_of(total))
    _show([found], as_json)


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
        entries, rules = (
            list(book.log(account)),
            {found.name: found.rule for found in book.accounts()},
        )
    if as_json:
        emit_json([{name: getattr(entry, name) for name in entry.__slots__} for entry in entries])
        return
    rows = [
        (e.sequence, e.time[:16].replace("T", " "), e.account, e.kind, *_said(e, rules[e.account]))
        for e in entries
    ]
    table(["entry", "time (UTC)", "account", "kind", "cost", "note"], rows)


@ledger.command()
@click.option("--head", help="SEQUENCE:HASH of an entry known from a receipt or an earlier check.")
@charged_option
@json_option
def verify(head: str | None, ledger: Path, as_json: bool) -> None:
    """Recompute the whole ledger and compare. Exit code 5 if anything does not follow."""
    with opened(ledger, create=False) as book:
        found = book.verify(_head(head))
    if as_json:
        emit_json(
            {
                "ok": found.ok,
                "entries": found.entries,
                "head": list(found.head),
                "faults": list(found.faults),
            }
        )
    elif found.ok:
        say(f"{found.entries} entries, all in order. Head: {found.head[0]}:{found.head[1]}")
        talk("Keep the head elsewhere: against a rewritten history only an outside copy helps.")
    if not found.ok:
        raise LedgerError(
            f"verifying {ledger}",
            str(found.fault),
            "Restore a copy that verifies; do not publish from this one",
        )


@ledger.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@json_option
def upgrade(old: Path, new: Path, as_json: bool) -> None:
    """Copy OLD, a ledger of version 0.1, to the file NEW, and go on with that one.

    Receipts of version 0.1 give away the size of a data file. The copy has new ones; stored answers are found by the
    same questions, and streams go on. OLD is only read: delete it when NEW is in use.
    """
    from sfumato.publishing.upgrading import upgrade_ledger

    done = upgrade_ledger(old, new)
    if as_json:
        emit_json(dataclasses.asdict(done))
        return
    streams = (
        f"{done.streams} streams, {done.finished} of them over" if done.streams else "no streams"
    )
    say(f"{done.entries} entries and {streams}: {new}")
    for account in done.mixed:
        talk(
            f"Account {account!r} was charged for different persons or relations: its total guarantees nothing."
        )
        talk("It pays for nothing more.")
    talk(
        f"Keep {new} and {new}.secrets together. Delete {old}, and replace what was published from it."
    )


@ledger.command()
@click.option("--out", type=NewFile(), help="File to write; left out: standard output.")
@ledger_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Accepted as everywhere; the output is JSON in any case.",
)
def export(out: Path | None, ledger: Path, as_json: bool) -> None:
    """Write the public part as JSON, for an auditor: accounts, entries, stored answers, published steps; no secrets."""
    del as_json
    with open_ledger(ledger, create=False) as book:
        text = json.dumps(exported(book), indent=1)
    if out is None:
        click.echo(plain_json(text))
    else:
        write_text(out, text + "\n")
        talk(f"Exported: {out}")


@ledger.command()
@ledger_option
@json_option
def key(ledger: Path, as_json: bool) -> None:
    """Print the public key that releases are signed with from now on; the first time, make it."""
    with open_ledger(ledger, create=False) as book:
        public = book.signer(create=True)
    if as_json:
        emit_json({"signer": public})
    else:
        say(str(public))
        talk(
            "Publish it where readers trust you. They check a release by `sfumato verify RELEASE --key KEY`."
        )


def _said(entry: Entry, rule: str) -> tuple[str, str]:
    """Cost and note of an entry for people; an account's opening states its total."""
    if entry.kind not in ("open", "bind", "cap"):
        return written(rule, entry.cost) if any(entry.cost) else "", entry.note
    note = json.loads(entry.note)
    match entry.kind:
        case "open":
            return "", f"total {written(rule, tuple(note['total']))}"
        case "bind":
            data = f", of the data set {note['data']!r}" if note["data"] else ""
            return "", f"protects {note['protects']}{data}"
        case _:
            return (
                "",
                f"ceiling of {note['data']!r} {written(note['rule'], tuple(note['ceiling']))}",
            )


def _head(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    sequence, colon, digest = text.partition(":")
    if not colon or not (sequence.isascii() and sequence.isdecimal()) or len(sequence) > 18:
        raise UsageError(
            f"--head {text}", "a head is a sequence number and a hash", "Write --head 12:3f9a..."
        )
    return int(sequence), digest


def _show(accounts: list[Account], as_json: bool) -> None:
    if as_json:
        emit_json(
            [
                {
                    "name": a.name,
                    "rule": a.rule,
                    "total": a.total,
                    "spent": a.spent,
                    "remaining": a.remaining,
                    "protects": a.protects,
                    "data": a.data,
                }
                for a in accounts
            ]
        )
        return
    rows = [
        (
            a.name,
            *(written(a.rule, amount) for amount in (a.total, a.spent, a.remaining)),
            a.protects,
        )
        for a in accounts
    ]
    table(["account", "total", "spent", "remaining", "protects"], rows)
