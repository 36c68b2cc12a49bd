"""``sfumato disclose``: write what a registry of deployments asks, from saved releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.answers.codec import UNREADABLE, from_bytes
from sfumato.cli.option_types import LEDGER
from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, say, talk
from sfumato.cli.output_paths import NewFile, require_unread
from sfumato.cli.saved import saved
from sfumato.errors import DataError, missing_file

if TYPE_CHECKING:
    from sfumato.audit import Finding


@click.command(short_help="Write a disclosure document for a public registry.")
@click.argument("releases", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--ledger",
    type=LEDGER,
    help="The ledger that was charged. Every release is compared with the answer stored there, "
    "and the whole account is described.",
)
@click.option("--account", help="Account that the releases are expected to be of.")
@click.option(
    "--facts",
    type=click.Path(path_type=Path),
    help="TOML file, such as the plan, whose table [publication] says what only a person knows: "
    "data_curators, intended_use, data_product_region, data_product_sector, registry_authors, "
    "sources.",
)
@click.option(
    "--out",
    type=NewFile(),
    default=Path("disclosure.yaml"),
    show_default=True,
    help="YAML file to write.",
)
@click.option(
    "--checklist",
    type=NewFile(),
    help="HTML file to write a checklist by NIST SP 800-226 to.",
)
@click.option(
    "--audit",
    type=click.Path(path_type=Path),
    help="JSON file that `sfumato audit --json` printed: what was measured of the mechanisms.",
)
@json_option
def disclose(
    releases: tuple[Path, ...],
    ledger: str | Path | None,
    account: str | None,
    facts: Path | None,
    out: Path,
    checklist: Path | None,
    audit: Path | None,
    as_json: bool,
) -> None:
    """Write a disclosure document about RELEASES, saved as JSON files, of one account.

    It has the fields of the OpenDP registry of deployments, tier 3. What a release does not know
    is marked TODO, with what to write. Nothing is spent.

    \b
    Example:
      sfumato disclose releases/*.json --ledger budget.db \\
        --facts plan.toml --out visits.yaml --checklist checklist.html
    """
    from sfumato.publishing.plan_file import read_publication
    from sfumato.reports.disclosure import disclose as write

    for option, path in (("--out", out), ("--checklist", checklist)):
        require_unread(option, path, [*releases, *filter(None, (facts, audit))])
    written = write(
        [*map(saved, releases), *([] if audit is None else _findings(audit))],
        out,
        ledger=ledger,
        account=account,
        facts=None if facts is None else read_publication(facts),
        checklist=checklist,
    )
    if as_json:
        emit_json(
            {
                "disclosure": str(written.path),
                "checklist": None if written.checklist is None else str(written.checklist),
                "filled": written.filled,
                "fields": written.fields,
                "missing": dict(written.missing),
                "verified": written.verified,
            }
        )
        return
    say(str(written.path))
    if written.checklist is not None:
        say(str(written.checklist))
    talk(f"Filled in from the releases: {written.filled} of {written.fields} fields.")
    if not written.verified:
        talk("The releases were not verified: give --ledger.")
    if written.missing:
        talk("Left for you to write:")
    for place, what in written.missing.items():
        talk(f"  {place.rpartition('.')[2]}: {what.removeprefix('TODO: ')}")


def _findings(path: Path) -> list[Finding]:
    """What an audit found, as it was printed; every verdict follows from its own figures again."""
    from sfumato.audit import Finding

    remedy = "Name a file with what sfumato audit --json printed"
    try:
        return from_bytes(path.read_bytes(), list[Finding])
    except FileNotFoundError:
        reason, remedy = missing_file(path), "Check the path"
    except OSError as error:
        reason = error.strerror or "the file cannot be read"
    except UNREADABLE:
        reason = "it does not hold the findings of an audit"
    raise DataError(f"the audit {path}", reason, remedy)
