"""``sfumato init``: a plan to fill in."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import click

from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, say, talk
from sfumato.errors import DataError, UsageError, printable

LINES = {
    "whole": '{ type = "interval", lower = ?, upper = ?, step = 1 }',
    "number": '{ type = "interval", lower = ?, upper = ? }',
    "date": '{ type = "interval", lower = "2026-01-01", upper = "2027-01-01", step = 1 }',
    "time": '{ type = "interval", lower = "2026-01-01T00:00", upper = "2027-01-01T00:00" }',
    "yes or no": '{ type = "categories", labels = [false, true] }',
    "text": '{ type = "categories", labels = ["?", "?"] }',
    "unknown": '{ type = "interval", lower = ?, upper = ? }   # or { type = "categories", labels = ["?", "?"] }',
}
PLAN = """\
# A plan for {name}. Names and types of columns come from the file's schema; nothing was read off its rows.
# State what is publicly known of each column that you ask about: take away the # and put bounds or labels for each ?.
# Then:
#   sfumato preview {plan}
#   sfumato release {plan} --ledger budget.db --report report.html

[source]
path = {path}
# person = "?"              # the column that names the person; without it, each row is one person
# rows_per_person = 1       # how many rows of each person are kept, chosen at random

[domain]
{domain}

[budget]
account = {account}
epsilon = "1"               # of everything that will ever be asked of these data

[release]
epsilon = "0.5"             # of this plan

[[questions]]
type = "histogram"
axes = [{first}]
"""


@click.command(short_help="Write a plan to fill in.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="The plan to write; else it is printed."
)
@json_option
def init(file: Path, out: Path | None, as_json: bool) -> None:
    """Write a plan for FILE (Parquet or CSV, or a folder of them) that you can fill in.

    Reads names and types of columns, never a row: what is publicly known of them, you must say. --json gives the columns.
    """
    from sfumato.data.describe import kinds

    found = {name: kind for name, kind in kinds(file).items() if kind in LINES}
    if not found:
        raise DataError(
            f"a plan for {file}", "it has no column of numbers, times or text", "Name another file"
        )
    if as_json:
        emit_json(found)
        return
    path = (
        file.resolve()
        if out is None
        else Path(os.path.relpath(file.resolve(), out.resolve().parent))
    )
    text = PLAN.format(
        name=printable(file.name),
        plan=out or "PLAN.toml",
        path=json.dumps(str(path)),
        domain="\n".join(f"# {_key(name)} = {LINES[kind]}" for name, kind in found.items()),
        account=json.dumps(file.stem),
        first=json.dumps(next(iter(found))),
    )
    if out is None:
        say(text.removesuffix("\n"))
        return
    _write(out, text)
    talk(f"Written: {out}. Fill in the domain, then: sfumato preview {out}")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _write(out: Path, text: str) -> None:
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        reason = None
    except OSError as error:
        reason = error.strerror or "it cannot be written"
    else:
        return
    if reason is None:
        raise UsageError(
            f"writing {out}",
            "there is such a file, and it may be filled in already",
            "Choose another name",
        )
    raise DataError(f"writing {out}", reason, "Choose a path that can be written")
