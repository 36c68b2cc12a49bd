"""``sfumato init``: write a plan to fill in."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import click

from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, say, talk
from sfumato.errors import DataError, UsageError, printable

AXIS_OF_KIND = {
    "whole": '{ type = "interval", lower = ?, upper = ?, step = 1 }',
    "number": '{ type = "interval", lower = ?, upper = ? }',
    "date": '{ type = "interval", lower = "2026-01-01", upper = "2027-01-01", step = 1 }',
    "time": '{ type = "interval", lower = "2026-01-01T00:00", upper = "2027-01-01T00:00" }',
    "yes or no": '{ type = "categories", labels = [false, true] }',
    "text": '{ type = "categories", labels = ["?", "?"] }',
    "unknown": '{ type = "interval", lower = ?, upper = ? }   '
    '# or { type = "categories", labels = ["?", "?"] }',
}
PLAN = """\
# A plan for {name}. Names and types of columns come from the file's schema; no row was read.
# For each column that you ask about, take away the # and replace each ? by public bounds or labels:
# state what is publicly known, never what you see in the data.
# Then:
#   sfumato preview {plan}
#   sfumato release {plan} --ledger budget.db --report report.html

[source]
path = {path}
# person = "?"              # the column that identifies the person; without it, a row is a person
# rows_per_person = 1       # how many rows of each person are kept, chosen at random

[domain]
{domain}

[budget]
account = {account}
epsilon = "1"               # for everything that will ever be asked of these data

[release]
epsilon = "0.5"             # for this plan

[[questions]]
type = "histogram"
axes = [{first}]
"""


@click.command(short_help="Write a plan to fill in.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="File to write the plan to.  [default: stdout]"
)
@json_option
def init(file: Path, out: Path | None, as_json: bool) -> None:
    """Write a plan for FILE (Parquet or CSV, or a folder of them) that you can fill in.

    Only names and types of columns are read, never a row: you state what is publicly known of
    their values. With --json the columns and their types are printed instead of a plan.

    \b
    Example:
      sfumato init trips.parquet --out trips.toml
    """
    from sfumato.data.describe import kinds

    columns = {name: kind for name, kind in kinds(file).items() if kind in AXIS_OF_KIND}
    if not columns:
        raise DataError(
            f"a plan for {file}", "it has no column of numbers, times or text", "Name another file"
        )
    if as_json:
        emit_json(columns)
        return
    text = _plan(file, out, columns)
    if out is None:
        say(text.removesuffix("\n"))
        return
    _write(out, text)
    talk(f"Written: {out}. Fill in the domain, then: sfumato preview {out}")


def _plan(file: Path, out: Path | None, columns: Mapping[str, str]) -> str:
    """The text of the plan. Paths in a plan are relative to the plan's own folder."""
    path = file.resolve()
    if out is not None:
        path = Path(os.path.relpath(path, out.resolve().parent))
    axes = [f"# {_key(name)} = {AXIS_OF_KIND[kind]}" for name, kind in columns.items()]
    return PLAN.format(
        name=printable(file.name),
        plan=out or "PLAN.toml",
        path=json.dumps(str(path)),
        domain="\n".join(axes),
        account=json.dumps(file.stem),
        first=json.dumps(next(iter(columns))),
    )


def _key(name: str) -> str:
    """A column's name as a key of TOML, quoted where it has to be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _write(out: Path, text: str) -> None:
    """Write a new file; one that exists may be filled in already and is kept."""
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        obstacle = None
    except OSError as error:
        obstacle = error.strerror or "it cannot be written"
    else:
        return
    if obstacle is None:
        raise UsageError(
            f"writing {out}",
            "there is such a file, and it may be filled in already",
            "Choose another name",
        )
    raise DataError(f"writing {out}", obstacle, "Choose a path that can be written")
