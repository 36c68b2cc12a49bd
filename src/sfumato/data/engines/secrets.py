"""The secrets that choose rows, as an engine holds them: never as text of a query."""

from __future__ import annotations

import base64

from sfumato.data.keyed_hash import Purpose, secret_for

_BYTES = 16


def text_of_secret(key: bytes, purpose: Purpose) -> str:
    """The secret of one purpose, derived from the key of a scan: 24 characters for 128 bits."""
    return base64.b64encode(secret_for(key, purpose)[:_BYTES]).decode()
