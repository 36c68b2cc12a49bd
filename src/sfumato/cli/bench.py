"""``sfumato bench``: claims of speed as a command."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sfumato.bench.measuring import Measured
from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, table, talk
from sfumato.cli.targets import NewFolder
from sfumato.errors import DataError


@click.command()
@click.argument("subjects", nargs=-1)
@click.option("--quick", is_flag=True, help="Smaller samples and fewer runs.")
@click.option(
    "--peers",
    is_flag=True,
    help="First install the peers, each in an environment of its own (.peers, or SFUMATO_PEERS).",
)
@click.option(
    "--out", type=NewFolder(), help="Folder for bench.json, bench.md and one SVG a subject."
)
@json_option
def bench(
    subjects: tuple[str, ...], quick: bool, peers: bool, out: Path | None, as_json: bool
) -> None:
    """Measure SUBJECTS (all, if none is named): each figure beside its peer or floor, in the same run.

    Figures are medians. Peers that are not installed are left out, with a word.
    """
    from sfumato.bench import run
    from sfumato.bench.measuring import grid, measured
    from sfumato.bench.peers import install

    for peer, there in install() if peers else ():
        talk(
            f"{peer} is installed."
            if there
            else f"{peer} could not be installed, and will be left out."
        )
    found: dict[str, Measured] = {}
    for subject, rows in run(subjects, quick=quick):
        found[subject] = measured(rows)
        if not as_json:
            table(*grid(rows), subject)
    if as_json:
        emit_json(found)
    if out is not None:
        _write(out, found)


def _write(folder: Path, found: dict[str, Measured]) -> None:
    """Write the pages; subjects that were measured before, and not now, stay as they were."""
    from sfumato.bench import picture
    from sfumato.bench.measuring import markdown

    figures = folder / "bench.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        every = dict(
            sorted(
                (
                    (json.loads(figures.read_text("utf-8")) if figures.exists() else {}) | found
                ).items()
            )
        )
        pages = {
            f"bench-{subject}.svg": picture(subject, one["rows"]) for subject, one in found.items()
        }
        pages |= {"bench.json": json.dumps(every, indent=1) + "\n", "bench.md": markdown(every)}
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = (
            getattr(error, "strerror", None)
            or "it cannot be written, or holds a bench.json of another make"
        )
    else:
        talk(f"Written: {', '.join(str(folder / name) for name in pages)}")
        return
    raise DataError(f"writing to {folder}", reason, "Choose another folder")
