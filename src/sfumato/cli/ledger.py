"""``sfumato ledger``: open, list and verify privacy accounts.

``sfumato ledger spender`` and ``sfumato ledger roles`` say who may spend, and who may do what.
``sfumato account`` says what an account promises, how it adds up, and what is left of it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import click

from sfumato.basics import several, write_bytes
from sfumato.cli.layers import LayeredCommand, LayeredGroup
from sfumato.cli.options import (
    LEDGER,
    anchored_option,
    grouped,
    json_ignored_option,
    json_option,
    ledger_option,
    opened,
)
from sfumato.cli.output import emit_json, plain_json, print_messages, print_output, table
from sfumato.cli.paths import NewFile
from sfumato.errors import LedgerError, UsageError
from sfumato.ledger import (
    Account,
    Amount,
    Book,
    Entry,
    Ledger,
    Spender,
    open_ledger,
    stated_terms,
    written,
)
from sfumato.ledger.book import store_of
from sfumato.ledger.entries import spent_in_words, terms_in
from sfumato.ledger.moving import exported
from sfumato.ledger.moving import migrate as move
from sfumato.ledger.store import Role
from sfumato.privacy import (
    KINDS,
    ZCDP,
    ApproxDP,
    PureDP,
    curves_of,
    measure_of,
    rule_of,
    stated_total,
    total_of,
)
from sfumato.privacy.measures import COMPOSITIONS

# What the columns of a table show, by the fields of an account and of a spender.
ACCOUNT = {
    "account": "name",
    "total": "total",
    "spent": "spent",
    "remaining": "remaining",
    "protects": "protects",
}
ONLY_IN_JSON = ("rule", "data")
SPENDER = {
    "account": "account",
    "spender": "name",
    "ceiling": "ceiling",
    "spent": "spent",
    "remaining": "remaining",
}

# --- people ---------------------------------------------------------------------------------------

spender_options = grouped(
    click.argument("name"),
    click.option("--account", default="default", show_default=True, help="The account."),
    click.option(
        "--ceiling",
        required=True,
        help="The most that this spender may ever spend from the account, in the measure of the "
        "account: EPSILON, EPSILON,DELTA or RHO.",
    ),
    anchored_option,
    json_option,
)


@click.group(cls=LayeredGroup, short_help="Name who may spend from an account, and how much.")
def spender() -> None:
    """Name who may spend from an account, each up to a ceiling of their own.

    Once an account has spenders, every release that it pays for names one of them: by --spender, or
    on a PostgreSQL server by the role that logs in. Only the custodian of the ledger names them.
    """


@spender.command()
@spender_options
def add(name: str, account: str, ceiling: str, ledger: str | Path, as_json: bool) -> None:
    """Let NAME spend from an account, up to a ceiling.

    On a PostgreSQL server, NAME is the role with which this person logs in.

    \b
    Example:
      sfumato ledger spender add ann --account trips-2026 --ceiling 0.5
    """
    with opened(ledger) as book:
        added = book.add_spender(account, name, *_amount(book, account, ceiling))
    _show([added], SPENDER, as_json)


@spender.command(name="set")
@spender_options
def change(name: str, account: str, ceiling: str, ledger: str | Path, as_json: bool) -> None:
    """Raise or lower the ceiling of NAME; with --ceiling 0, NAME spends no more."""
    with opened(ledger) as book:
        changed = book.set_spender(account, name, *_amount(book, account, ceiling))
    _show([changed], SPENDER, as_json)


@spender.command(name="list")
@click.option("--account", help="List only the spenders of this account.  [default: all]")
@ledger_option
@json_option
def show_spenders(account: str | None, ledger: str | Path, as_json: bool) -> None:
    """List the spenders: the ceiling of each, what is spent and what remains."""
    with open_ledger(ledger, create=False) as book:
        accounts = book.accounts() if account is None else [book.account(account)]
        spenders = [spender for paying in accounts for spender in book.spenders(paying.name)]
    _show(spenders, SPENDER, as_json)


def _amount(book: Ledger, account: str, ceiling: str) -> tuple[Amount, str]:
    """Return a ceiling in the units of an account, and its terms where that composes by curves."""
    # A measure refuses an amount of 0, which as a ceiling says: spend no more.
    if ceiling.strip() == "0":
        return (0, 0), ""
    paying = book.account(account)
    total = stated_total(ceiling, "--ceiling", in_rho=paying.rule == "zcdp")
    # In an account of epsilon and delta, a ceiling may leave the delta out.
    without_delta = (rule_of(total), paying.rule) == ("pure", "approx") and not paying.by_curves
    if rule_of(total) != paying.rule and not without_delta:
        raise UsageError(
            f"--ceiling {ceiling}",
            f"account {account!r} counts {KINDS[paying.rule]}",
            "Write the ceiling as the budget is written",
        )
    if paying.by_curves and isinstance(total, ApproxDP):
        total = ApproxDP(total.epsilon, total.delta, composition="curves")
    return total_of(total), stated_terms(total)


@click.command(cls=LayeredCommand)
@click.option("--custodian", multiple=True, help="Role that may do everything. Repeat for each.")
@click.option("--analyst", multiple=True, help="Role that may spend, once it is a spender.")
@click.option("--auditor", multiple=True, help="Role that may read the public part.")
@click.option("--remove", multiple=True, help="Role that may do nothing any more.")
@click.option(
    "--print", "only_print", is_flag=True, help="Print the SQL statements, and do not run them."
)
@ledger_option
@json_option
def roles(
    custodian: tuple[str, ...],
    analyst: tuple[str, ...],
    auditor: tuple[str, ...],
    remove: tuple[str, ...],
    only_print: bool,
    ledger: str | Path,
    as_json: bool,
) -> None:
    """Say who may do what with a ledger on a PostgreSQL server; without options, list it.

    Each person has a database role of their own, which the server's administrator creates. The
    command may be given again; the last one holds. To name custodians, the administrator runs what
    --print shows.

    \b
    Example:
      sfumato ledger roles --analyst ann --analyst ben --auditor eve
    """
    from sfumato.ledger.postgres import Person, PostgresStore, give, grants, people

    names_of: dict[Role | None, tuple[str, ...]] = {
        "custodian": custodian,
        "analyst": analyst,
        "auditor": auditor,
        None: remove,
    }
    persons = [Person(name, role) for role, names in names_of.items() for name in names]
    with closing(store_of(ledger, create=False)) as store:
        if not isinstance(store, PostgresStore):
            raise UsageError(
                "roles of a ledger in a file",
                "whoever can write to a file may do everything with it",
                "Move it to a server: `sfumato ledger migrate`",
            )
        if only_print:
            statements = grants(store, persons)
            emit_json(statements) if as_json else print_output(";\n".join(statements) + ";")
            return
        if persons:
            give(store, persons)
            hint = " Name who spends, and how much: `sfumato ledger spender add`"
            print_messages("Done." + hint * bool(custodian + analyst))
        known = people(store)
    if as_json:
        emit_json([{"name": person.name, "role": person.role} for person in known])
    else:
        rows = [(person.name, str(person.role)) for person in known]
        table(["name", "role"], rows)


# --- accounts -------------------------------------------------------------------------------------


@click.group(cls=LayeredGroup, short_help="Open, list and verify privacy accounts.")
def ledger() -> None:
    """Open privacy accounts, list what was spent, and verify that the record was not changed.

    An account has a total privacy budget, and each release is charged to it before the data are
    read.
    """


@ledger.command()
@click.argument("account")
@click.option("--epsilon", help="Total epsilon of the account.")
@click.option(
    "--delta", default="0", show_default=True, help="Total delta of the account, with --epsilon."
)
@click.option(
    "--rho",
    help="Total rho, for an account in zero-concentrated differential privacy, instead of "
    "--epsilon.",
)
@click.option(
    "--composition",
    type=click.Choice(COMPOSITIONS),
    default="sum",
    show_default=True,
    help="How costs add up, for good. By curves, with a delta, many small answers cost less.",
)
@click.option(
    "--widens-to",
    metavar="EPSILON,DELTA",
    help="What an account in epsilon or rho may be widened to later, by curves: `ledger widen`.",
)
@anchored_option
@json_option
def init(
    account: str,
    epsilon: str | None,
    delta: str,
    rho: str | None,
    composition: str,
    widens_to: str | None,
    ledger: str | Path,
    as_json: bool,
) -> None:
    """Open ACCOUNT with a total, or check that it exists with exactly that total.

    \b
    Examples:
      sfumato ledger init trips-2026 --epsilon 3
      sfumato ledger init counts --epsilon 5 --delta 1e-6 --composition curves
    """
    total = measure_of("the account's total", epsilon=epsilon, delta=delta, rho=rho, prefix="--")
    target = None if widens_to is None else stated_total(widens_to, "--widens-to")
    if target is not None and (isinstance(total, ApproxDP) or not isinstance(target, ApproxDP)):
        raise UsageError(
            f"--widens-to {widens_to}",
            "an account in epsilon or rho is widened to an epsilon and a delta",
            "Write --rho 0.5 --widens-to 5.4,1e-6",
        )
    match total:
        case ApproxDP():
            total = ApproxDP(total.epsilon, total.delta, composition=composition)
        case PureDP() | ZCDP() if composition == "curves":
            raise UsageError(
                "--composition curves without --delta",
                "curves count an epsilon and a delta",
                "Add --delta, such as 1e-6; or open it in epsilon or rho with --widens-to",
            )
        case PureDP():
            total = PureDP(total.epsilon, widens_to=target)
        case ZCDP():
            total = ZCDP(total.rho, widens_to=target)
    # Before the ledger is made: a target that is refused leaves none.
    terms = stated_terms(total)
    with opened(ledger, create=True) as book:
        opened_account = book.open_account(account, rule_of(total), total_of(total), terms)
    _show([opened_account], ACCOUNT, as_json, ONLY_IN_JSON)


@ledger.command()
@click.argument("account")
@anchored_option
@json_option
def widen(account: str, ledger: str | Path, as_json: bool) -> None:
    """Widen ACCOUNT, once, to the epsilon and delta that its opening states.

    An account in epsilon or rho then promises that epsilon and delta, and adds up by curves: it
    pays for more. What it has spent counts. Only the custodian of the ledger may do it, and it
    cannot be undone.

    \b
    Example:
      sfumato ledger init trips --rho 0.5 --widens-to 5.4,1e-6
      sfumato ledger widen trips
    """
    with opened(ledger) as book:
        widened = book.widen(account)
    _show([widened], ACCOUNT, as_json, ONLY_IN_JSON)


@ledger.command()
@ledger_option
@json_option
def show(ledger: str | Path, as_json: bool) -> None:
    """List the accounts: the total of each, what is spent and what remains."""
    with open_ledger(ledger, create=False) as book:
        tell_if_moved(book)
        _show(book.accounts(), ACCOUNT, as_json, ONLY_IN_JSON)


@ledger.command()
@click.option("--account", help="List only the entries of this account.  [default: all]")
@ledger_option
@json_option
def log(account: str | None, ledger: str | Path, as_json: bool) -> None:
    """List the entries of the ledger, oldest first.

    \b
    open     an account was opened, with its total
    cap      a ceiling was set, of a spender or of a data set
    bind     whom the account protects, and which data set, was fixed
    reserve  a charge: the only kind that costs
    resume   a charge was taken over after its program had failed
    abandon  a program gave a charge up; another may resume it
    store    the answer of a charge was stored
    hand     the stored answer was handed out for the first time
    """
    with open_ledger(ledger, create=False) as book:
        tell_if_moved(book)
        entries = list(book.log(account))
        rules = {account_now.name: account_now.rule for account_now in book.accounts()}
    if as_json:
        emit_json([entry.plain() for entry in entries])
        return
    rows = [
        (
            *(entry.sequence, entry.time[:16].replace("T", " "), entry.account, entry.kind),
            *_cost_and_note(entry, rules[entry.account]),
        )
        for entry in entries
    ]
    table(["entry", "time (UTC)", "account", "kind", "cost", "note"], rows)


@ledger.command()
@click.option(
    "--head",
    help="SEQUENCE:HASH of an entry, from a receipt or an earlier check, that must be there.",
)
@anchored_option
@json_option
def verify(head: str | None, ledger: str | Path, as_json: bool) -> None:
    """Check that no entry of the ledger was changed or removed.

    Every hash and every total is computed again. Exit code 5 means that one does not match.
    """
    with opened(ledger) as book:
        label = book.label
        verification = book.verify(_head(head))
    if as_json:
        emit_json(
            {
                "ok": verification.ok,
                "entries": verification.entries,
                "head": list(verification.head),
                "faults": list(verification.faults),
            }
        )
    elif verification.ok:
        sequence, digest = verification.head
        print_output(f"{verification.entries} entries, all in order.\nHead: {sequence}:{digest}")
        print_messages(
            "Keep the head in another place: only a copy outside the ledger shows "
            "that its whole history was rewritten."
        )
    if not verification.ok:
        raise LedgerError(
            f"verifying {label}",
            str(verification.fault),
            "Restore a copy that verifies; do not publish from this one",
        )


@ledger.command()
@click.argument("source", metavar="FROM", type=LEDGER)
@click.argument("target", metavar="TO", type=LEDGER)
@json_option
def migrate(source: str | Path, target: str | Path, as_json: bool) -> None:
    """Move the ledger FROM to TO, such as a file to a database.

    FROM and TO are files or addresses of databases; TO must be new or empty. Stored answers are
    found by the same questions as before, and streams go on. FROM pays for nothing afterwards. If
    the move is cut off, give the same command again.

    \b
    Example:
      sfumato ledger migrate budget.db postgresql://host/database
    """
    _move(source, target, as_json, upgraded=False)


def _move(source: str | Path, target: str | Path, as_json: bool, *, upgraded: bool) -> None:
    with (
        closing(store_of(source, create=False)) as old,
        closing(store_of(target, create=True)) as new,
    ):
        done = move(old, new, upgraded=upgraded)
        before = old.label
        after = new.label
    if as_json:
        emit_json(({"upgraded": True} if upgraded else {}) | dataclasses.asdict(done))
        return
    contents = f"{several(done.entries, 'entry')} and {several(done.streams, 'stream')}"
    print_output(f"{'Copied' if upgraded else 'Moved'} {contents} to {after}")
    print_messages(f"Use it from now on. Nothing can be charged to {before} any more.")


@ledger.command()
@click.argument("old", type=LEDGER)
@click.argument("new", type=LEDGER)
@json_option
def upgrade(old: str | Path, new: str | Path, as_json: bool) -> None:
    """Move OLD to NEW, a ledger in the newest format; use NEW from then on.

    The newest format holds accounts by curves. OLD need not be upgraded: it takes the format when
    the first such account is opened in it. Accounts keep adding up as they did, entries their
    hashes. NEW is a new file or an empty database; OLD pays for nothing afterwards. For a ledger of
    version 0.1, run this command of version 0.2.0, and go on with NEW here.
    """
    with open_ledger(old, create=False) as book:
        if book.is_newest:
            if as_json:
                emit_json({"upgraded": False})
                return
            print_output(f"Nothing to do: {book.label} is in the newest format.")
            print_messages(f"{new} was not written. Go on with the ledger as it is.")
            return
    _move(old, new, as_json, upgraded=True)


@ledger.command()
@click.option("--out", type=NewFile(), help="File to write to.  [default: stdout]")
@ledger_option
@json_ignored_option
def export(out: Path | None, ledger: str | Path) -> None:
    """Write the public part of the ledger as JSON, for an auditor.

    It holds accounts, entries, stored answers and the published steps of streams, and no secrets.
    """
    with open_ledger(ledger, create=False) as book:
        text = json.dumps(exported(book), indent=1)
    if out is None:
        click.echo(plain_json(text))
    else:
        write_bytes(out, f"{text}\n".encode())
        print_messages(f"Exported: {out}")


@ledger.command()
@ledger_option
@json_option
def key(ledger: str | Path, as_json: bool) -> None:
    """Print the public key by which readers check the signatures of releases.

    The first call makes the key; releases are signed from then on.
    """
    with open_ledger(ledger, create=False) as book:
        public = book.signer(create=True)
    if as_json:
        emit_json({"signer": public})
    else:
        print_output(str(public))
        print_messages(
            "Publish it where readers trust you. "
            "They check a release by `sfumato verify RELEASE --key KEY`."
        )


ledger.add_command(spender)
ledger.add_command(roles)


def _cost_and_note(entry: Entry, rule: str) -> tuple[str, str]:
    """Return cost and note of an entry, in words."""
    if entry.kind in ("open", "bind", "cap"):
        return "", _what_account_is(entry)
    cost = written(rule, entry.cost) if any(entry.cost) else ""
    by = f"{entry.spender!r}: " if entry.spender else ""
    return cost, f"{by}{entry.note}"


def _what_account_is(entry: Entry) -> str:
    """Return in words what an entry says of its account: its note is in JSON."""
    note = json.loads(entry.note)
    match entry.kind:
        case "open" if "widens" in note:
            return f"widened to {written('approx', tuple(note['terms']['total']))}, by curves"
        case "open":
            how = ""
            if (terms := terms_in(entry.note)) and note["rule"] == "approx":
                how = ", by curves"
            elif terms:
                target = written("approx", curves_of(terms).total)
                how = f", may be widened to {target}, by curves"
            total = written(note["rule"], tuple(note["total"]))
            return f"total {total}{how}"
        case "bind":
            data = f", of the data set {note['data']!r}" if note["data"] else ""
            return f"protects {note['protects']}{data}"
        case _:
            ceiling = written(note["rule"], tuple(note["ceiling"]))
            return f"ceiling of {entry.spender or note['data']!r} {ceiling}"


def _head(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    sequence, colon, digest = text.partition(":")
    # More digits than SQLite's integers hold would be a fault of the database, not of the user.
    is_number = sequence.isascii() and sequence.isdecimal() and len(sequence) <= 18
    if not colon or not is_number:
        raise UsageError(
            f"--head {text}", "a head is a sequence number and a hash", "Write --head 12:3f9a..."
        )
    return int(sequence), digest


def tell_if_moved(book: Book) -> None:
    """Say where a ledger was moved to, whose accounts or entries are shown all the same."""
    try:
        where = book.moved_to()
    except LedgerError:
        # Secrets that must not be used: every charge says why, and here they are not needed.
        return
    if where is not None:
        print_messages(
            f"The ledger was moved to {where}: look there, for this is how it stood then, and "
            "nothing can be charged to it any more."
        )


def _show(
    rows: Sequence[Account] | Sequence[Spender],
    columns: Mapping[str, str],
    as_json: bool,
    only_in_json: Sequence[str] = (),
) -> None:
    """Print accounts or spenders; amounts in JSON are whole numbers of the ledger's units.

    ``columns`` has the field that each of them shows.
    """
    if as_json:
        fields = [*columns.values(), *only_in_json]
        emit_json([{field: getattr(row, field) for field in fields} for row in rows])
        return
    table(list(columns), [[_cell(row, field) for field in columns.values()] for row in rows])


def _cell(row: Account | Spender, field: str) -> object:
    if field == "spent":
        return spent_in_words(row)
    shown = getattr(row, field)
    return written(row.rule, shown) if field in ("total", "ceiling", "remaining") else shown


# --- sfumato account ------------------------------------------------------------------------------


@click.command(cls=LayeredCommand, name="account")
@click.argument("name", required=False)
@click.option("--epsilon", help="Say how many more answers at this epsilon the account can pay.")
@click.option("--delta", default="0", show_default=True, help="Of each answer, with --epsilon.")
@click.option("--rho", help="Of each answer, instead of --epsilon.")
@ledger_option
@json_option
def account(
    name: str | None,
    epsilon: str | None,
    delta: str,
    rho: str | None,
    ledger: str | Path,
    as_json: bool,
) -> None:
    """Say what the account NAME promises, how it adds up, and what is left of it.

    Without NAME, of every account. Nothing is charged. What is left holds for answers of any kind.
    Ceilings of spenders and data sets may allow less: `sfumato ledger spender list`.

    \b
    Example:
      sfumato account trips-2026 --epsilon 0.02
    """
    cost = None
    if epsilon is not None or rho is not None:
        cost = measure_of("each answer", epsilon=epsilon, delta=delta, rho=rho, prefix="--")
    with open_ledger(ledger, create=False) as book:
        tell_if_moved(book)
        accounts = book.accounts() if name is None else [book.account(name)]
    if not as_json:
        for known in accounts:
            print_output(known.described(cost))
        return
    plain = []
    for known in accounts:
        fields: dict[str, object] = {
            "account": known.name,
            "rule": known.rule,
            "composition": "curves" if known.by_curves else "sum",
            "total": written(known.rule, known.total),
            "left": written(known.rule, known.remaining),
            "protects": known.protects,
            "data": known.data,
        }
        if cost is not None:
            fields["remaining_answers"] = known.remaining_answers(
                epsilon=epsilon, delta=delta, rho=rho
            )
        plain.append(fields)
    emit_json(plain)
