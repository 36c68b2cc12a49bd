"""Whether this machine runs Spark is said before anything is charged."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sfumato.data.readers import spark as spark_session
from sfumato.data.readers.spark import fitness, java_version, obstacle, opened_session
from sfumato.errors import DataError, UsageError


def java(folder: Path, said: str) -> Path:
    """A program that answers as Java does when asked for its version."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_381"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("Unable to locate a Java Runtime", None),
    ],
)
def test_the_version_of_java_is_read(
    said: str, version: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, said)))
    assert java_version() == version


def test_without_java_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "installed", lambda: {"pyspark": "4.1.0"})
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with (
        pytest.raises(UsageError, match="there is no Java, which Spark runs on"),
        opened_session("local[2]", None),
    ):
        pass
    assert obstacle(remote=True) is None
    assert "there is no Java" in fitness()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "pyspark is not installed"),
        ({"pyspark": "3.5.6"}, "4 or later is needed"),
        ({"pyspark": "4.0.0", "pyspark-client": "4.0.0"}, "beside pyspark"),
        ({"pyspark-client": "4.0.0"}, "only connects to servers"),
    ],
)
def test_what_is_installed_must_fit(
    found: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_session, "installed", lambda: found)
    with pytest.raises(UsageError, match=words), opened_session(None, None):
        pass


def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "installed", lambda: {"pyspark": "4.1.0"})
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, 'openjdk version "11.0.2"')))
    assert obstacle() == (
        "Java 11 is too old for Spark 4",
        "Install Java 17 or 21, or set JAVA_HOME",
    )


def test_a_master_and_a_server_exclude_each_other() -> None:
    with (
        pytest.raises(UsageError, match="exclude each other"),
        opened_session("local[2]", "sc://localhost"),
    ):
        pass


@pytest.mark.deep
def test_a_server_that_does_not_answer_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("grpc")
    monkeypatch.setattr(spark_session, "installed", lambda: {"pyspark-client": "4.1.0"})
    # Were Spark's own client let loose, it would ask for minutes, and again at the end.
    monkeypatch.setattr(spark_session, "PATIENCE", 0.01)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens at it, and nobody else can
        with (
            pytest.raises(DataError, match="no Spark Connect server answers at that address"),
            opened_session(None, f"sc://127.0.0.1:{taken.getsockname()[1]}"),
        ):
            pass
