"""Every test draws the same in every run, whichever tests run before it, and nothing twice."""

from __future__ import annotations

import json
import os
import secrets
import sys

import numpy as np
import pytest

from sfumato.random.bits import current
from support import entropy

SUITE = """
import json, os
import numpy as np
import pytest
import sfumato as sf
from sfumato.random.bits import current

PAGE = os.environ["PAGE_OF_DRAWS"]
LINE = sf.Interval(0, 1)

def drawn():
    return [current().words(3).tolist(), sf.source(np.zeros((1, 1)), {"x": LINE})._token]

def write(name, found):
    with open(PAGE, "a") as page:
        print(json.dumps([name, found]), file=page)

IMPORTED = drawn()

@pytest.fixture(scope="module", params=[0, 1])
def wide(request):
    return drawn()

@pytest.fixture
def narrow():
    return drawn()

def test_imported():
    write("imported", IMPORTED)

@pytest.mark.parametrize("case", [0, 1])
def test_first(narrow, case, wide, request):
    write(request.node.name, [narrow, drawn(), drawn()])
    write(f"wide {request.node.callspec.params['wide']}", wide)

def test_second(narrow, request):
    before = drawn()
    wide = request.getfixturevalue("late")
    write("late", wide)
    write("second", [narrow, before, drawn()])

@pytest.fixture(scope="module")
def late():
    return drawn()

def test_late(late):
    write("late", late)

def test_children():
    read, end = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            os.write(end, json.dumps(drawn()).encode() + b"\\n")
            os._exit(0)
        os.wait()
    os.close(end)
    with open(read) as pipe:
        write("children", [json.loads(line) for line in pipe])

@pytest.mark.system_entropy
def test_system():
    write("system", drawn())
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the tests of SUITE, all or those named, and return what they drew by name."""
    suite = tmp_path / "test_suite.py"
    suite.write_text(SUITE, encoding="utf-8")
    page = tmp_path / "page"
    monkeypatch.setenv("PAGE_OF_DRAWS", str(page))

    def run(*options: str, tests: tuple[str, ...] = ()) -> dict[str, object]:
        page.unlink(missing_ok=True)
        sys.modules.pop("test_suite", None)  # what it draws while it is imported is drawn again
        chosen = [f"{suite}::{test}" for test in tests] or [str(suite)]
        fixed = ["-q", "-p", "support.entropy", "-p", "no:cacheprovider", "-c", os.devnull]
        fixed += [f"--rootdir={tmp_path}", "--import-mode=importlib"]
        assert pytest.main([*fixed, *options, *chosen]) == 0
        return dict(json.loads(line) for line in page.read_text("utf-8").splitlines())

    return run


def leaves(drawn: object) -> list[object]:
    """The numbers and tokens of what was drawn."""
    return [leaf for part in drawn for leaf in leaves(part)] if isinstance(drawn, list) else [drawn]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_test_draws_the_same_in_every_run_and_nothing_that_another_draws(run):
    whole = run()
    other = run("--entropy=salt")
    assert len(whole) == 11
    everything = [leaf for drawn in (whole, other) for leaf in leaves(list(drawn.values()))]
    assert len(everything) == len(set(everything))

    again = run()
    assert {name for name in whole if whole[name] != again[name]} == {"system"}


def test_what_a_test_draws_does_not_depend_on_which_ran_before_it(run):
    whole = run()
    some = run(tests=("test_second", "test_first[1-1]"))
    assert set(some) == {"second", "late", "test_first[1-1]", "wide 1"}
    assert some == {name: whole[name] for name in some}
    # Here the late fixture is there already when the second test asks for it.
    assert run(tests=("test_late", "test_second"))["second"] == whole["second"]


def test_other_libraries_draw_from_the_system():
    ask = "secrets.token_bytes(16), os.urandom(16), np.random.default_rng().bytes(16)"
    names = {"secrets": secrets, "os": os, "np": np}
    ours, another = compile(ask, __file__, "eval"), compile(ask, "/library.py", "eval")
    found = []
    for _ in range(2):
        with entropy.drawn_from("name"):
            found.append([*eval(ours, names), *eval(another, names)])
    same = [first == second for first, second in zip(*found, strict=True)]
    assert same == [True] * 3 + [False] * 3


def test_no_word_is_drawn_twice_around_another_stream():
    drawn = [current().words(600)]
    with entropy.drawn_from("name"):
        drawn.append(current().words(600))
    drawn.append(current().words(600))
    assert np.unique(np.concatenate(drawn)).size == 1800
