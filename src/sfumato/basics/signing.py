"""Signatures by which a release is known to be the custodian's: Ed25519."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

NAME = "signing key"  # under which a ledger keeps its private key among its secrets
HEXADECIMAL = frozenset("0123456789abcdef")


def new_key() -> bytes:
    """A new private key, 32 random bytes."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_of(private: bytes) -> str:
    """The public key of a private one, as 64 hexadecimal digits."""
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw().hex()


def sign(private: bytes, message: bytes) -> str:
    """A signature, as 128 hexadecimal digits."""
    return Ed25519PrivateKey.from_private_bytes(private).sign(message).hex()


def valid(public: str, signature: str, message: bytes) -> bool:
    """Whether a signature is that of a message under a public key.

    Parameters
    ----------
    public : str
        64 hexadecimal digits.
    signature : str
        128 hexadecimal digits, in lower case.
    message : bytes

    Returns
    -------
    bool
        False also for what is no key or no signature.
    """
    # `bytes.fromhex` takes capitals and blanks, too. One signature may have one form only, or a
    # release could be changed without its signature failing.
    if len(signature) != 128 or not HEXADECIMAL.issuperset(signature):
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), message)
    except (ValueError, InvalidSignature):
        return False
    return True
