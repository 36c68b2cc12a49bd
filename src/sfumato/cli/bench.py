"""``sfumato bench``: claims of speed as a command."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sfumato.cli.options import json_option
from sfumato.cli.output import emit_json, table, talk
from sfumato.errors import DataError


@click.command()
@click.argument("subjects", nargs=-1)
@click.option("--quick", is_flag=True, help="Smaller samples and fewer runs.")
@click.option("--peers", is_flag=True, help="First install the peers, each in an environment of its own (.peers, or SFUMATO_PEERS).")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for bench.json, bench.md and one SVG a subject.")
@json_option
def bench(subjects: tuple[str, ...], quick: bool, peers: bool, out: Path | None, as_json: bool) -> None:
    """Measure SUBJECTS (all, if none is named): each figure beside its peer or floor, in the same run.

    Figures are medians. Peers that are not installed are left out, with a word.
    """
    from sfumato.bench import picture, run
    from sfumato.bench.peers import install
    from sfumato.bench.tables import grid, machine, markdown

    for peer, there in install() if peers else ():
        talk(f"{peer} is installed." if there else f"{peer} could not be installed, and will be left out.")
    found = {}
    for subject, rows in run(subjects, quick=quick):
        found[subject] = rows
        if not as_json:
            heads, cells = grid(rows)
            table(heads, cells, subject)
    if as_json:
        emit_json({"machine": machine(), "figures": found})
    if out is not None:
        pages = {"bench.json": json.dumps({"machine": machine(), "figures": found}, indent=1) + "\n"}
        pages |= {f"bench-{subject}.svg": picture(subject, rows) for subject, rows in found.items()}
        pages["bench.md"] = "\n".join(
            [f"# Benchmarks\n\n{machine()}\n", *(f"{markdown(s, rows)}\n![{s}](bench-{s}.svg)\n" for s, rows in found.items())]
        )
        _write(out, pages)


def _write(folder: Path, pages: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or "it cannot be written"
    else:
        talk(f"Written: {', '.join(str(folder / name) for name in pages)}")
        return
    raise DataError(f"writing to {folder}", reason, "Choose a folder that can be written")
