"""``sfumato ledger spender`` and ``sfumato ledger roles``: who may spend, and who may do what."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from sfumato.cli.options import anchored_option, json_option, ledger_option, opened
from sfumato.cli.output import emit_json, say, table, talk
from sfumato.cli.parsing import parse_budget
from sfumato.errors import UsageError
from sfumato.ledger import Account, Amount, Ledger, Spender, open_ledger, written
from sfumato.privacy.measures import total_of

CEILING_HELP = (
    "The most that this spender may ever spend from the account, in the measure of the account: "
    "EPSILON, EPSILON,DELTA or RHO."
)


@click.group(short_help="Name who may spend from an account, and how much.")
def spender() -> None:
    """Name who may spend from an account, each up to a ceiling of their own.

    Once an account has spenders, every release that it pays for names one of them: by --spender, or
    on a PostgreSQL server by the role that logs in. Only the custodian of the ledger names them.
    """


@spender.command()
@click.argument("name")
@click.option("--account", default="default", show_default=True, help="The account.")
@click.option("--ceiling", required=True, help=CEILING_HELP)
@anchored_option
@json_option
def add(name: str, account: str, ceiling: str, ledger: str | Path, as_json: bool) -> None:
    """Let NAME spend from an account, up to a ceiling.

    On a PostgreSQL server, NAME is the role with which this person logs in.

    \b
    Example:
      sfumato ledger spender add ann --account trips-2026 --ceiling 0.5
    """
    with opened(ledger) as book:
        found = book.add_spender(account, name, _amount(book, account, ceiling))
    _show([found], as_json)


@spender.command(name="set")
@click.argument("name")
@click.option("--account", default="default", show_default=True, help="The account.")
@click.option("--ceiling", required=True, help=CEILING_HELP)
@anchored_option
@json_option
def change(name: str, account: str, ceiling: str, ledger: str | Path, as_json: bool) -> None:
    """Raise or lower the ceiling of NAME; with --ceiling 0, NAME spends no more."""
    with opened(ledger) as book:
        found = book.set_spender(account, name, _amount(book, account, ceiling))
    _show([found], as_json)


@spender.command(name="list")
@click.option("--account", help="List only the spenders of this account.  [default: all]")
@ledger_option
@json_option
def show(account: str | None, ledger: str | Path, as_json: bool) -> None:
    """List the spenders: the ceiling of each, what is spent and what remains."""
    with open_ledger(ledger, create=False) as book:
        accounts = book.accounts() if account is None else [book.account(account)]
        found = [each for one in accounts for each in book.spenders(one.name)]
    _show(found, as_json)


def _amount(book: Ledger, account: str, ceiling: str) -> Amount:
    """A ceiling in the units of an account."""
    if ceiling.strip() == "0":
        return 0, 0
    found: Account = book.account(account)
    total = parse_budget(ceiling, gaussian=found.rule == "zcdp", option="--ceiling")
    assert total is not None
    if found.rule == "pure" and total_of(total)[1]:
        raise UsageError(
            f"--ceiling {ceiling}",
            f"account {account!r} counts epsilon only",
            "Leave the delta out",
        )
    return total_of(total)


def _show(spenders: list[Spender], as_json: bool) -> None:
    if as_json:
        emit_json([_plain(each) for each in spenders])
        return
    rows = [
        (
            each.account,
            each.name,
            written(each.rule, each.ceiling),
            written(each.rule, each.spent),
            written(each.rule, each.remaining),
        )
        for each in spenders
    ]
    table(["account", "spender", "ceiling", "spent", "remaining"], rows)


def _plain(each: Spender) -> dict[str, object]:
    """A spender as JSON; amounts are whole numbers of the ledger's units."""
    return {
        "account": each.account,
        "name": each.name,
        "ceiling": each.ceiling,
        "spent": each.spent,
        "remaining": each.remaining,
    }


@click.command()
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
    from sfumato.ledger.book import store_of
    from sfumato.ledger.postgres import PostgresStore
    from sfumato.ledger.postgres_roles import Person, give, grants, people

    asked = [
        *(Person(name, "custodian") for name in custodian),
        *(Person(name, "analyst") for name in analyst),
        *(Person(name, "auditor") for name in auditor),
        *(Person(name, None) for name in remove),
    ]
    with closing(store_of(ledger, create=False)) as store:
        if not isinstance(store, PostgresStore):
            raise UsageError(
                "roles of a ledger in a file",
                "whoever can write to a file may do everything with it",
                "Move it to a server: `sfumato ledger migrate`",
            )
        if only_print:
            statements = grants(store, asked)
            emit_json(statements) if as_json else say(";\n".join(statements) + ";")
            return
        if asked:
            give(store, asked)
            spending = bool(custodian or analyst)
            hint = " Name who spends, and how much: `sfumato ledger spender add`"
            talk("Done." + hint * spending)
        found = people(store)
    if as_json:
        emit_json([{"name": each.name, "role": each.role} for each in found])
    else:
        table(["name", "role"], [(each.name, str(each.role)) for each in found])
