"""``sfumato verify``: check that a release is the one that was published."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from sfumato.cli.option_types import LEDGER
from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, prose
from sfumato.cli.saved import saved
from sfumato.errors import DataError, UsageError


@click.command(short_help="Check that a release is the one that was published.")
@click.argument("release", type=click.Path(path_type=Path))
@click.option(
    "--ledger",
    type=LEDGER,
    envvar="SFUMATO_LEDGER",
    help="For custodians, analysts and auditors: the ledger that was charged for the release. The "
    "environment variable SFUMATO_LEDGER sets it too, where there is no --key.",
)
@click.option(
    "--key",
    help="For a reader: the custodian's public key, as `sfumato ledger key` prints it.",
)
@json_option
def verify(release: Path, ledger: str | Path | None, key: str | None, as_json: bool) -> None:
    """Check that RELEASE, a JSON file, is the one that was published.

    It is compared with the ledger that was charged for it, or its signature is checked with the
    custodian's public key. Exit code 4 means that it was changed, or is not in the ledger.
    """
    from sfumato.ledger import open_ledger
    from sfumato.publishing.verifying import verify as compare
    from sfumato.publishing.verifying import verify_signature

    stated = click.get_current_context().get_parameter_source("ledger")
    if key is not None and stated is ParameterSource.ENVIRONMENT:
        ledger = None
    if (ledger is None) == (key is None):
        remedy = "Give one of them: a custodian has the ledger, a reader has the key"
        raise UsageError(f"verifying {release}", "it takes --ledger or --key", remedy)
    held = saved(release)
    if ledger is not None:
        with open_ledger(ledger, create=False) as book:
            verdict = compare(held, book)
    else:
        assert key is not None
        verdict = verify_signature(held, key)
    if not verdict.ok:
        obstacle = verdict.reason.rstrip(".").replace("It ", "it ", 1)
        remedy = "Do not publish it; ask the custodian for the release that was published"
        if key is not None and (held.receipt is None or not held.receipt.signature):
            # No fault by itself: there was no key yet, or an analyst published it.
            remedy = "Whoever may read the ledger can compare it with that: --ledger"
        raise DataError(f"verifying {release}", obstacle, remedy)
    if as_json:
        emit_json({"ok": verdict.ok, "reason": verdict.reason})
    else:
        prose(verdict.reason)
