"""``sfumato bench``: measure speed, beside comparable libraries."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sfumato.bench.measuring import Measured
from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, table, talk
from sfumato.cli.output_paths import NewFolder
from sfumato.errors import DataError


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
    from sfumato.bench import run
    from sfumato.bench.measuring import grid, measured

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
        talk(f"Written: {', '.join(map(str, written))}")


def _install_peers() -> None:
    from sfumato.bench.peers import install

    for peer, installed in install():
        if installed:
            talk(f"{peer} is installed.")
        else:
            talk(f"{peer} could not be installed, and will be left out.")


def _write(folder: Path, found: dict[str, Measured]) -> list[Path]:
    """Write the pages. Subjects that were measured before, and not now, keep their figures."""
    from sfumato.bench import picture
    from sfumato.bench.measuring import markdown

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
