"""Commands about saved releases, and the demo.

``sfumato report`` writes saved releases as one HTML page. ``sfumato disclose`` writes what a
registry of deployments asks, from saved releases. ``sfumato verify`` checks that a release is the
one that was published. ``sfumato demo`` publishes two real tables, and writes a report.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource

from sfumato.answers import accuracy_sentence
from sfumato.basics import UNREADABLE, from_bytes
from sfumato.cli.layers import LayeredCommand
from sfumato.cli.options import DEFAULT_LEDGER, LEDGER, json_option
from sfumato.cli.output import emit_json, print_messages, print_output, prose, scanning
from sfumato.cli.paths import NewFile, NewFolder, require_unread, saved
from sfumato.errors import BudgetExceeded, DataError, UsageError, missing_file
from sfumato.ledger import open_ledger

if TYPE_CHECKING:
    from sfumato.audit import Finding


# --- sfumato report -------------------------------------------------------------------------------


@click.command(cls=LayeredCommand)
@click.argument("releases", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=NewFile(),
    default=Path("report.html"),
    show_default=True,
    help="File to write the page to.",
)
@click.option("--title", help="Heading of the page.  [default: What was released]")
@click.option(
    "--for",
    "audience",
    type=click.Choice(["board", "technical"]),
    default="technical",
    show_default=True,
    help="Who reads it. For a board, it has no proofs, receipts, hashes and long tables.",
)
@json_option
def report(
    releases: tuple[Path, ...],
    out: Path,
    title: str | None,
    audience: Literal["board", "technical"],
    as_json: bool,
) -> None:
    """Write RELEASES, saved as JSON files, as one HTML page that needs no network.

    Its front page fits one screen. It prints on A4.

    \b
    Examples:
      sfumato report releases/*.json --out report.html
      sfumato report releases/*.json --for board --out board.html
    """
    from sfumato.reports.page import report as write

    require_unread("--out", out, releases)
    page = write([saved(path) for path in releases], out, title, audience=audience)
    if as_json:
        emit_json({"report": str(page)})
    else:
        print_output(str(page))


# --- sfumato disclose -----------------------------------------------------------------------------


@click.command(cls=LayeredCommand, short_help="Write a disclosure document for a public registry.")
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
      sfumato disclose releases/*.json --ledger sfumato.db \\
        --facts plan.toml --out visits.yaml --checklist checklist.html
    """
    from sfumato.publishing.plan_file import read_publication
    from sfumato.reports.disclosure import disclose as write

    read = [*releases, *filter(None, (facts, audit))]
    for option, path in (("--out", out), ("--checklist", checklist)):
        require_unread(option, path, read)
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
    print_output(str(written.path))
    if written.checklist is not None:
        print_output(str(written.checklist))
    print_messages(f"Filled in from the releases: {written.filled} of {written.fields} fields.")
    if not written.verified:
        print_messages("The releases were not verified: give --ledger.")
    if written.missing:
        print_messages(
            "Left for you to write:",
            *(
                f"  {place.rpartition('.')[2]}: {what.removeprefix('TODO: ')}"
                for place, what in written.missing.items()
            ),
        )


def _findings(path: Path) -> list[Finding]:
    """What an audit found, as it was printed; every verdict follows from its own figures again."""
    from sfumato.audit import Finding

    remedy = "Name a file with what sfumato audit --json printed"
    try:
        return from_bytes(path.read_bytes(), list[Finding])
    except FileNotFoundError:
        reason = missing_file(path)
        remedy = "Check the path"
    except OSError as error:
        reason = error.strerror or "the file cannot be read"
    except UNREADABLE:
        reason = "it does not hold the findings of an audit"
    raise DataError(f"the audit {path}", reason, remedy)


# --- sfumato verify -------------------------------------------------------------------------------


@click.command(cls=LayeredCommand, short_help="Check that a release is the one that was published.")
@click.argument("release", type=click.Path(path_type=Path))
@click.option(
    "--ledger",
    type=LEDGER,
    default=DEFAULT_LEDGER,
    show_default=True,
    envvar="SFUMATO_LEDGER",
    help="For custodians, analysts and auditors: the ledger that was charged for the release. The "
    "environment variable SFUMATO_LEDGER sets it too, where there is no --key.",
)
@click.option(
    "--key",
    help="For a reader: the custodian's public key, as `sfumato ledger key` prints it.",
)
@json_option
def verify(release: Path, ledger: str | Path, key: str | None, as_json: bool) -> None:
    """Check that RELEASE, a JSON file, is the one that was published.

    It is compared with the ledger that was charged for it, or its signature is checked with the
    custodian's public key. Exit code 4 means that it was changed, or is not in the ledger.
    """
    from sfumato.publishing.verifying import verify as compare
    from sfumato.publishing.verifying import verify_signature

    stated = click.get_current_context().get_parameter_source("ledger")
    is_missing = stated is ParameterSource.DEFAULT and not DEFAULT_LEDGER.exists()
    # A ledger of the environment gives way to a key: whoever set it did not think of this release.
    is_refused = is_missing if key is None else stated is ParameterSource.COMMANDLINE
    if is_refused:
        raise UsageError(
            f"verifying {release}",
            "it takes --ledger or --key",
            "Give one of them: a custodian has the ledger, a reader has the key",
        )
    held = saved(release)
    if key is not None:
        verdict = verify_signature(held, key)
    else:
        with open_ledger(ledger, create=False) as book:
            verdict = compare(held, book)
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


# --- sfumato demo ---------------------------------------------------------------------------------


@click.command(cls=LayeredCommand)
@click.option(
    "--out",
    type=NewFolder(),
    default=Path("demo"),
    show_default=True,
    help="Folder to write the report, the ledger and the releases to.",
)
@json_option
def demo(out: Path, as_json: bool) -> None:
    """Publish two example tables that come with Sfumato, and write a report.

    The tables are the flights out of New York in 2013 and the cities of the world. A second run
    prints the same answers and spends nothing.
    """
    from sfumato.demo.run import publish

    try:
        with scanning() as progress:
            result = publish(out, progress)
    except BudgetExceeded as error:
        error.add_note(
            "The demo was published to this folder by another copy of Sfumato: its tables are other"
            " files. Name a new folder: sfumato demo --out FOLDER."
        )
        raise
    if as_json:
        emit_json(
            {
                "report": str(result.report),
                "ledger": str(result.ledger),
                "releases": [str(path) for path in result.saved],
            }
        )
        return
    accuracies = [f"{answer.heading}: {accuracy_sentence(answer)}" for answer in result.releases]
    print_messages(*accuracies, f"Ledger: {result.ledger}")
    print_output(f"Report: {result.report.resolve()}")
