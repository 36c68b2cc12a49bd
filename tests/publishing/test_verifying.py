"""An edited release is not believed."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.answers.loading import signed_part, standing
from sfumato.answers.release import marked
from sfumato.basics.signing import new_key, public_of, sign
from sfumato.cli import run
from sfumato.ledger import open_ledger
from sfumato.publishing.verifying import verify, verify_signature

SOURCE = sf.source(np.zeros((50, 1)), sf.Domain(x=sf.Interval(0, 4)), name="doc")


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Path]:
    """A histogram, the second part of a plan and three steps of a stream, beside their ledger."""
    with sf.Publisher(SOURCE, ledger=tmp_path / "b.db", account="a", budget="9") as publisher:
        publisher.ledger.signer(create=True)
        one = publisher.release(sf.Histogram("x", bins=2), epsilon="1")
        _, two = publisher.release(
            [sf.Histogram("x", bins=3), sf.Histogram("x", bins=4)], epsilon="1"
        )
        stream = publisher.open(sf.Counter(9), epsilon="1", key="k")
        for _ in range(3):
            stream.push(5)
        three = stream.history()
        stream.push(5)
    names = {"histogram": one, "plan": two, "stream": three}
    return {name: release.save(tmp_path / f"{name}.json") for name, release in names.items()}


def test_what_was_published_is_verified(saved: dict[str, Path], tmp_path: Path) -> None:
    with open_ledger(tmp_path / "b.db") as ledger:
        signer = ledger.signer()
        assert signer is not None
        for path in saved.values():
            release = sf.load(path)
            assert verify(release, ledger).ok
            assert verify_signature(release, signer).ok
            assert standing(release).startswith("signed with the key")


EDITS = {
    "histogram": lambda plain: plain["counts"].__setitem__(0, plain["counts"][0] + 1),
    "plan": lambda plain: plain["receipt"].__setitem__("part", "1 of 2"),
    "stream": lambda plain: plain["outputs"][1].__setitem__(0, 99),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_was_edited_is_not(saved: dict[str, Path], tmp_path: Path, name: str) -> None:
    plain = json.loads(saved[name].read_text())
    EDITS[name](plain)
    saved[name].write_text(json.dumps(plain))
    release = sf.load(saved[name])
    with open_ledger(tmp_path / "b.db") as ledger:
        signer = ledger.signer()
        assert signer is not None
        assert "differs" in verify(release, ledger).reason
        assert "was edited" in verify_signature(release, signer).reason
        assert "not verified" in standing(release)


def test_another_ledger_another_key_and_no_signature(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    release = sf.load(saved["histogram"])
    with open_ledger(None) as other:
        assert not verify(release, other).ok
    assert "another key" in verify_signature(release, "0" * 64).reason
    with pytest.raises(sf.UsageError, match="64"):
        verify_signature(release, "0")
    with sf.Publisher(SOURCE, budget="1") as publisher:
        unsigned = publisher.release(sf.Histogram("x"), epsilon="1")
    assert "not signed" in verify_signature(unsigned, "0" * 64).reason
    assert standing(unsigned) == ""
    assert "not verified" in standing(marked(unsigned, loaded=True))


def test_the_commands_that_verify_sign_and_export(
    saved: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["verify", "histogram.json", "--ledger", "b.db"]) == 0
    assert "is the answer stored under entry" in capsys.readouterr().out
    assert run(["ledger", "key", "--ledger", "b.db"]) == 0
    key = capsys.readouterr().out.strip()
    assert run(["verify", "stream.json", "--key", key, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    plain = json.loads(saved["histogram"].read_text())
    plain["counts"][0] += 1
    Path("edited.json").write_text(json.dumps(plain))
    for given in (
        ["edited.json", "--ledger", "b.db"],
        ["edited.json", "--key", key],
        ["none.json", "--key", key],
    ):
        assert run(["verify", *given]) == 4
    assert run(["verify", "edited.json"]) == 2
    assert run(["verify", "edited.json", "--key", "x"]) == 2
    assert run(["verify", "edited.json", "--ledger", "none.db"]) == 5
    capsys.readouterr()
    assert run(["ledger", "export", "--ledger", "b.db", "--out", "public.json"]) == 0
    assert json.loads(Path("public.json").read_text())["signer"] == key


def receipt_edited(release: sf.Release, **fields: object) -> sf.Release:
    assert release.receipt is not None
    return msgspec.structs.replace(
        release, receipt=msgspec.structs.replace(release.receipt, **fields)
    )


def test_a_stream_signed_by_a_stranger_is_not_believed(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    """Its numbers are right, and a reader would compare the wrong key."""
    stranger = new_key()
    release = sf.load(saved["stream"])
    assert release.receipt is not None
    forged = receipt_edited(release, signer=public_of(stranger), signature="")
    forged = receipt_edited(forged, signature=sign(stranger, signed_part(forged)))
    plain = receipt_edited(release, signer="", signature="")
    with open_ledger(tmp_path / "b.db") as ledger:
        assert not verify(forged, ledger).ok
        assert not verify(receipt_edited(release, signature=""), ledger).ok
        assert not verify(receipt_edited(release, version="9"), ledger).ok
        assert not verify(receipt_edited(plain, signature=release.receipt.signature), ledger).ok
        assert verify(plain, ledger).ok


@pytest.mark.parametrize("entry", [2**63, 10**30, -1, 0])
def test_a_receipt_that_names_no_entry_is_not_believed(
    saved: dict[str, Path], tmp_path: Path, entry: int
) -> None:
    release = receipt_edited(sf.load(saved["histogram"]), entry=entry)
    with open_ledger(tmp_path / "b.db") as ledger:
        assert not verify(release, ledger).ok


def test_a_signature_has_one_form(saved: dict[str, Path]) -> None:
    release = sf.load(saved["histogram"])
    assert release.receipt is not None
    signer = release.receipt.signer
    signature = release.receipt.signature
    for other in (
        signature.upper(),
        f" {signature}",
        f"{signature[:64]} {signature[64:]}",
        signature + "00",
    ):
        assert not verify_signature(receipt_edited(release, signature=other), signer).ok
