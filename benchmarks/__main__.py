"""``python -m benchmarks``: measure speed, beside comparable libraries."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from benchmarks.measuring import Measured
from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, print_messages, table
from sfumato.cli.paths import NewFolder
from sfumato.errors import DataError, SfumatoError


@click.command()
@click.argument("subjects", nargs=-1)
@click.option("--quick", is_flag=True, help="Use smaller samples and fewer runs.")
@click.option(
    "--peers",
    is_flag=True,
    help="First install the libraries to compare with, each in an environment of its own "
    "(in the folder .peers, or SFUMATO_PEERS).",
)
@click.option(
    "--out",
    type=NewFolder(),
    help="Also write bench.json, bench.md and one SVG per subject to this folder.",
)
@json_option
def bench(
    subjects: tuple[str, ...], quick: bool, peers: bool, out: Path | None, as_json: bool
) -> None:
    """Measure the speed of SUBJECTS, or of all subjects if none is named.

    Each figure stands beside that of a comparable library, or of the least work possible, measured
    in the same run. Figures are medians. Libraries that are not installed are left out, and the
    output says so.
    """
    from benchmarks.measuring import grid, measured
    from benchmarks.run import run

    if peers:
        _install_peers()
    found: dict[str, Measured] = {}
    written: list[Path] = []
    for subject, rows in run(subjects, quick=quick):
        found[subject] = measured(rows)
        if out is not None:
            # At once: whoever reads stdout may leave before the last subject, which takes a while.
            written = _write(out, found)
        if not as_json:
            table(*grid(rows), subject)
    if as_json:
        emit_json(found)
    if written:
        print_messages(f"Written: {', '.join(map(str, written))}")


def _install_peers() -> None:
    from benchmarks.peers import install

    for peer, installed in install():
        if installed:
            print_messages(f"{peer} is installed.")
        else:
            print_messages(f"{peer} could not be installed, and will be left out.")


def _write(folder: Path, found: dict[str, Measured]) -> list[Path]:
    """Write the pages. Subjects that were measured before, and not now, keep their figures."""
    from benchmarks.measuring import markdown
    from benchmarks.run import picture

    figures = folder / "bench.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = json.loads(figures.read_text("utf-8")) if figures.exists() else {}
        together = dict(sorted((before | found).items()))
        pages = {
            f"bench-{subject}.svg": picture(subject, one["rows"]) for subject, one in found.items()
        }
        pages["bench.json"] = json.dumps(together, indent=1) + "\n"
        pages["bench.md"] = markdown(together)
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        obstacle = getattr(error, "strerror", None)
    else:
        return [folder / name for name in pages]
    raise DataError(
        f"writing to {folder}",
        obstacle or "it cannot be written, or its bench.json is not one of ours",
        "Choose another folder",
    )


if __name__ == "__main__":
    try:
        bench(prog_name="python -m benchmarks")
    except SfumatoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
