"""``sfumato account``: what an account promises, how it adds up, and what is left of it."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.layers import LayeredCommand
from sfumato.cli.ledger import tell_if_moved
from sfumato.cli.options import json_option, ledger_option
from sfumato.cli.output import emit_json, say
from sfumato.ledger import Account, open_ledger, written
from sfumato.privacy import measure_of


@click.command(cls=LayeredCommand)
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
            say(known.described(cost))
        return
    numbers = [
        None if cost is None else known.remaining_answers(epsilon=epsilon, delta=delta, rho=rho)
        for known in accounts
    ]
    described = zip(accounts, numbers, strict=True)
    emit_json([_plain(known, number) for known, number in described])


def _plain(known: Account, number: int | None) -> dict[str, object]:
    """Return one account as JSON holds it."""
    fields: dict[str, object] = {
        "account": known.name,
        "rule": known.rule,
        "composition": "curves" if known.by_curves else "sum",
        "total": written(known.rule, known.total),
        "left": written(known.rule, known.remaining),
        "protects": known.protects,
        "data": known.data,
    }
    return fields if number is None else {**fields, "remaining_answers": number}
