"""A wire between a client and a PostgreSQL server, which breaks at a chosen message.

It knows two things of the protocol: where the client has asked all that it wants an answer to (a
simple query, or a sync), and where the server says that it is done. Between these two a connection
may be cut, or its process on the server ended. So every way of asking is covered: one statement at
a time, several at once, functions.
"""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit, urlunsplit

How = Literal["before", "after", "ended", "ended after"]
HOWS: tuple[How, ...] = ("before", "after", "ended", "ended after")
"""Where it breaks: before the server hears the question; after it has answered, and before the
client hears the answer; or there, by the server, which ends the process of the connection."""

ASKED = b"QS"  # a simple query; a sync, which ends the messages of one or more statements
DONE = b"Z"
KEY = b"K"
END = "SELECT pg_terminate_backend(%s, 60000)"


class Wire:
    """A way to a server that breaks once, at its n-th question since it was told to.

    Parameters
    ----------
    address : str
        The server's URL, with its folder of sockets as the host.

    Attributes
    ----------
    address : str
        The URL to be used instead.
    asked : int
        How many questions came since `break_at` was called.
    broken : bool
        Whether it has broken since.
    """

    def __init__(self, address: str) -> None:
        self._server = address
        parts = urlsplit(address)
        (host,) = parse_qs(parts.query)["host"]
        self._socket = f"{host}/.s.PGSQL.5432"
        self._folder = Path(tempfile.mkdtemp(prefix="sfumato-wire-"))
        self.address = urlunsplit(parts._replace(query=f"host={self._folder}"))
        self._lock = threading.Lock()
        self.break_at(0)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._folder / ".s.PGSQL.5432"))
        self._listening.listen()
        self._connections: list[_Connection] = []
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    def break_at(self, number: int, how: How = "before") -> None:
        """Break at a question, counted from now; 0: never."""
        self.asked = 0
        self.broken = False
        self._number = number
        self._how: How = how

    def close(self) -> None:
        """Take no further connections, and cut all that there are."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._serving.join()
        self._listening.close()
        for connection in self._connections:
            connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._socket)
            self._connections.append(_Connection(self, client, server))

    def due(self) -> How | None:
        """Count a question; how to break at it, if it is the one."""
        with self._lock:
            self.asked += 1
            if self.asked != self._number or self.broken:
                return None
            self.broken = True
            return self._how

    def end(self, process: int) -> None:
        """End a process of the server, and wait until it has ended."""
        import psycopg

        with closing(psycopg.connect(self._server, autocommit=True)) as other:
            other.execute(END, (process,))


class _Connection:
    """One connection through a wire: two threads, one for each direction."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket) -> None:
        self._wire = wire
        self._client = client
        self._server = server
        self._process = 0
        self._held: Callable[[], None] | None = None  # what happens instead of the next answer
        self._threads = [
            threading.Thread(target=self._carry, args=(run,), daemon=True)
            for run in (self._questions, self._answers)
        ]
        for thread in self._threads:
            thread.start()

    def _carry(self, run: Callable[[], None]) -> None:
        try:
            run()
        except OSError:
            pass
        finally:
            self._cut()

    def _cut(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._cut()
        for thread in self._threads:
            thread.join()
        self._client.close()
        self._server.close()

    def _end(self) -> None:
        self._wire.end(self._process)

    def _questions(self) -> None:
        with self._client.makefile("rb") as stream:
            self._server.sendall(_sized(stream.read(4), stream.read))
            self._ask(_messages(stream.read))

    def _ask(self, messages: Iterator[tuple[bytes, bytes]]) -> None:
        waiting = b""
        for kind, message in messages:
            waiting += message
            if kind not in ASKED:
                continue
            how = self._wire.due()
            if how == "before":
                return
            if how == "ended":
                self._end()
            elif how is not None:
                self._held = self._cut if how == "after" else self._end
            self._server.sendall(waiting)
            waiting = b""
        self._server.sendall(waiting)

    def _answers(self) -> None:
        with self._server.makefile("rb") as stream:
            self._tell(_messages(stream.read))

    def _tell(self, messages: Iterator[tuple[bytes, bytes]]) -> None:
        for kind, message in messages:
            if kind == KEY:
                (self._process,) = struct.unpack("!i", message[5:9])
            if self._held is None:
                self._client.sendall(message)
            elif kind == DONE:
                instead, self._held = self._held, None
                instead()


def _sized(size: bytes, read: Callable[[int], bytes]) -> bytes:
    """A message whose length, its own four bytes included, was read."""
    if len(size) < 4:
        raise OSError
    (length,) = struct.unpack("!i", size)
    return size + read(length - 4)


def _messages(read: Callable[[int], bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The messages of one direction, each with its kind."""
    while kind := read(1):
        yield kind, kind + _sized(read(4), read)
