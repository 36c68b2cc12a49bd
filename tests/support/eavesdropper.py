"""A server that speaks PostgreSQL just well enough to ask for a password, and keeps the answer.

It is a process of its own, since the driver holds Python's lock while it waits for a server.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
CLEARTEXT = b"R" + struct.pack("!II", 8, 3)


class Eavesdropper:
    """Listens on this machine until the end of a ``with`` block.

    Attributes
    ----------
    port : int
    starts : list of str
        What clients said of themselves, user and database; known at the end.
    sent : list of str
        What they answered when they were asked for their password; known at the end.
    """

    def __enter__(self) -> Eavesdropper:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.eavesdropper"],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        kept, _errors = self._process.communicate("")
        lines = [line.split(" ", 1) for line in kept.splitlines()]
        self.starts = [rest for kind, rest in lines if kind == "start"]
        self.sent = [rest for kind, rest in lines if kind == "sent"]


def _serve(listening: socket.socket) -> None:
    while True:
        client, _address = listening.accept()
        with client, suppress(OSError, struct.error):
            _ask(client)


def _ask(client: socket.socket) -> None:
    while True:
        size, code = struct.unpack("!II", client.recv(8, socket.MSG_WAITALL))
        rest = client.recv(size - 8, socket.MSG_WAITALL)
        if code not in (SSL_REQUEST, GSS_REQUEST):
            break
        client.sendall(b"N")
    print("start", rest, flush=True)
    client.sendall(CLEARTEXT)
    if answer := client.recv(4096):
        print("sent", answer, flush=True)


if __name__ == "__main__":
    own = socket.create_server(("127.0.0.1", 0))
    print(own.getsockname()[1], flush=True)
    threading.Thread(target=_serve, args=(own,), daemon=True).start()
    sys.stdin.read()
