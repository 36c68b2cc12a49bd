"""Options of commands that have an engine count: ``--engine spark``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

import click
import msgspec

from sfumato.errors import UsageError

if TYPE_CHECKING:
    from sfumato.data.readers.spark import SparkFiles

P = ParamSpec("P")
R = TypeVar("R")


class EngineSettings(msgspec.Struct, frozen=True):
    """What counts the rows, and where it runs."""

    engine: Literal["spark"] | None
    master: str | None
    remote: str | None

    @contextmanager
    def opened(self, path: str) -> Iterator[SparkFiles | None]:
        """The Parquet files at a path as the engine's table; None without an engine."""
        if self.engine is None:
            if self.master is not None or self.remote is not None:
                raise UsageError(
                    "--master or --remote", "they are about Spark", "Add --engine spark"
                )
            yield None
            return
        from sfumato.data.readers.spark import SparkFiles, opened_session

        with opened_session(self.master, self.remote) as session:
            yield SparkFiles(path, session)


def engine_options(command: Callable[P, R]) -> Callable[P, R]:
    """--engine, --master and --remote."""
    options = (
        click.option(
            "--engine",
            type=click.Choice(["spark"]),
            help="What counts the rows of Parquet files.  [default: this program]",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="Where Spark runs, such as local[2] or yarn.  [default: as Spark is configured]",
        ),
        click.option(
            "--remote", metavar="URL", help="A Spark Connect server, such as sc://host:15002."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
