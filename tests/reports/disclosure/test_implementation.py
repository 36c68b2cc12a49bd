"""What is said of the implementation is what the releases and the installed files say."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil

import sfumato as sf
from sfumato.questions.persons import PersonsRelease
from sfumato.reports.disclosure import entry as implementation
from sfumato.reports.disclosure.evidence import gathered


def test_the_digest_is_that_of_the_files(tmp_path, monkeypatch):
    whole = hashlib.sha256()
    package = tmp_path / "package"
    (package / "room").mkdir(parents=True)
    for name, text in {"a.py": "1", "room/b.html": "2"}.items():
        (package / name).write_text(text)
        whole.update(name.encode() + b"\0" + hashlib.sha256(text.encode()).digest())
    (package / "c.txt").write_text("not ours")
    monkeypatch.setattr(implementation, "PACKAGE", package)
    digest = implementation.digest.__wrapped__
    assert digest() == whole.hexdigest()
    (package / "a.py").write_text("3")
    assert digest() != whole.hexdigest()
    (package / "a.py").write_text("1")
    shutil.move(package / "a.py", package / "d.py")
    assert digest() != whole.hexdigest()


def test_software_of_another_version_has_no_digest(releases):
    found = gathered(releases)
    assert implementation.digest() in implementation.software(found)[0]
    older = dataclasses.replace(found, version="0.1.0")
    assert implementation.software(older)[0] == "Software: Sfumato 0.1.0, Apache-2.0."


def test_limits_that_were_paid_for_are_named(releases):
    found = gathered(releases)
    (persons,) = [one for one in releases if isinstance(one, PersonsRelease)]
    assert f"(entry {persons.receipt.entry}), and paid for" in implementation.preparation(found)
    others = [one for one in releases if one is not persons]
    assert "and paid for. Limits" not in implementation.preparation(gathered(others))


def test_sensitivity_and_slack_are_said(releases):
    said = implementation.mechanisms(gathered(releases))
    for release in releases:
        assert release.guarantee.slack in said
    assert f"Implemented by Sfumato {sf.__version__}." in said
