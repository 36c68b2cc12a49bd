"""A notebook, run by a kernel: values are shown as tables, and ``plot()`` as a picture."""

from __future__ import annotations

import asyncio
import base64
import os
import re
from pathlib import Path

import pytest

import sfumato as sf
from support.workers import HANG

nbformat = pytest.importorskip("nbformat", reason="make venv installs it")
nbclient = pytest.importorskip("nbclient", reason="make venv installs it")
pytest.importorskip("ipykernel", reason="make venv installs it")

CODE = Path(__file__).parent / "typing" / "notebook.py"
SHOWN = ("domain", "source", "h", "again", "partition", "choice", "window")
DRAWN = ("h.plot()", "axes", "choice.plot()", "window.plot()")


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The cells of the notebook, executed: the outputs of each by its last line."""
    folder = tmp_path_factory.mktemp("notebook")
    _, *code = re.split(r"^# %%\n", CODE.read_text(encoding="utf-8"), flags=re.M)
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in code])
    client = nbclient.NotebookClient(
        made, timeout=HANG, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    path = str(Path(sf.__file__).parent.parent)
    asyncio.run(client.async_execute(env={**os.environ, "PYTHONPATH": path}))
    assert (folder / "partition.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "ages.xlsx").read_bytes().startswith(b"PK")
    return {cell.source.strip().splitlines()[-1]: cell.outputs for cell in made.cells}


def data_of(outputs):
    (shown,) = [output.data for output in outputs if output.output_type == "execute_result"]
    return shown


def test_nothing_is_said_on_stderr(cells):
    streams = [o for outputs in cells.values() for o in outputs if o.output_type == "stream"]
    assert streams == []


@pytest.mark.parametrize("name", SHOWN)
def test_a_value_is_shown_as_a_table(cells, name):
    text = data_of(cells[name])["text/html"]
    assert text.startswith('<div class="sfumato">')
    assert "<table>" in text


def test_a_preview_is_shown_as_a_table(cells):
    (name,) = [name for name in cells if name.startswith("publisher.preview")]
    assert "Preview: Histogram of age" in data_of(cells[name])["text/html"]


def test_a_stored_answer_says_that_nothing_was_spent(cells):
    assert "nothing was spent" in data_of(cells["again"])["text/html"]
    assert "nothing spent" in data_of(cells["again"])["text/plain"]
    assert "nothing was spent" not in data_of(cells["h"])["text/html"]


@pytest.mark.parametrize("name", DRAWN)
def test_a_plot_is_shown_as_a_picture(cells, name):
    data = data_of(cells[name])
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")


def test_nothing_about_the_rows_is_shown_of_a_source(cells):
    assert "3000" not in data_of(cells["source"])["text/html"]
    assert "3,000" not in data_of(cells["source"])["text/html"]
