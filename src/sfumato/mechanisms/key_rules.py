"""The selection of keys as a value that engines apply where they count.

``thresholds.released`` decides about all keys of a table at once, with noise from one keystream. A
``KeyRule`` decides about any part of them, wherever the engine evaluates it: the noise of a key is
a function of a secret of the release and of the key.

Guarantee: that of the law, for all keys together; in whatever parts, in whatever order and however
often the rule is applied to the same counts.
Holds because: the noise of distinct keys is as if drawn independently of the law (``Streams``,
under a secret that is used for one selection only), so what is shown of all parts together has the
same distribution as what ``released`` shows. Applied to a part again, the rule gives the same
output: nothing is shown of a second draw.
Canonical: a key's stream belongs to its type and its bytes, so 1 and "1" have noise of their own,
and a key has the same noise whatever the engine and the width of its integers.
Not covered: an engine whose rows differ between two evaluations of one part; whoever reads the
rule, which holds the secret, in an engine's memory or network.
Source: ``thresholds``, ``gaussian_keys``; the streams: ``random/streams.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.basics.numbers import Array
from sfumato.errors import InternalError
from sfumato.mechanisms.scripts import Script
from sfumato.mechanisms.thresholds import KeyLaw, released
from sfumato.random.bits import Bits, secret_key
from sfumato.random.streams import Streams

KEY = "key"
"""The column of a batch that holds the keys."""
ROWS_OF_KEY = "rows_of_key"
"""The column that holds the true count of each key."""
NOISY_ROWS = "noisy_rows"
"""The column of the noisy counts of the keys that are shown."""

_TOGETHER = 2**16
"""How many groups are decided at a time: temporary arrays stay small, whatever a batch holds."""

_TEXT, _INTEGER, _BOOLEAN = range(3)
"""Kinds of keys: the streams of different kinds are different."""


@dataclass(frozen=True, repr=False)
class KeyRule:
    """Decides which keys of a batch of groups are shown, and with which noisy counts.

    A small value that can be pickled and sent to an engine's workers. Its ``repr`` does not hold
    the secret.

    Attributes
    ----------
    law : TruncatedGeometric, ThresholdLaplace or ThresholdGaussian
    secret : bytes of length 32, or Script
        Of this selection alone. Audits give a script, from which the noise is then taken in the
        order of the groups.

    >>> import pyarrow as pa
    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.thresholds import ThresholdLaplace
    >>> rule = KeyRule(ThresholdLaplace(Fraction(1), 50), bytes(32))
    >>> batch = pa.record_batch({"key": ["few", "many"], "rows_of_key": [2, 1000]})
    >>> shown = rule.shown(batch)
    >>> shown.schema.names, shown["key"].to_pylist()
    (['key', 'noisy_rows'], ['many'])
    """

    law: KeyLaw
    secret: bytes | Script

    @classmethod
    def of(cls, law: KeyLaw, noise: Bits) -> KeyRule:
        """Make the rule of one selection, with a fresh secret from the given bits."""
        return cls(law, noise if isinstance(noise, Script) else secret_key(noise))

    def shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep the groups whose keys are shown.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            One row for each group. Columns: ``key`` (text, integers of 64 bits or booleans; groups
            of null are left out), ``rows_of_key`` (the true count of the whole key, in each group
            of it), and any others, which are kept as they are.

        Returns
        -------
        pyarrow.RecordBatch
            The groups whose keys are shown, without ``rows_of_key``, with ``noisy_rows``.
        """
        parts = [
            self._shown_part(batch.slice(start, _TOGETHER))
            for start in range(0, max(batch.num_rows, 1), _TOGETHER)
        ]
        table = pa.Table.from_batches(parts).combine_chunks()
        return table.to_batches()[0] if table.num_rows else parts[0]

    def shown_of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Keep the groups of each batch whose keys are shown; see ``shown``."""
        return map(self.shown, batches)

    def _shown_part(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        index = batch.schema.get_field_index(KEY)
        batch = batch.set_column(index, KEY, _listed(batch[KEY]))
        present = batch.filter(batch[KEY].is_valid())
        rows_of_key = present[ROWS_OF_KEY].cast(pa.int64()).to_numpy(zero_copy_only=False)
        # A key of no rows has no noise: the streams are those of the others.
        present = present.filter(pa.array(rows_of_key > 0))
        rows_of_key = rows_of_key[rows_of_key > 0]
        indices, values = released(rows_of_key, self.law, self._noise(present[KEY]))
        shown = present.take(pa.array(indices, pa.int64())).drop_columns([ROWS_OF_KEY])
        return shown.append_column(NOISY_ROWS, pa.array(values, pa.int64()))

    def _noise(self, keys: pa.Array) -> Bits:
        if isinstance(self.secret, Script):
            return self.secret
        kind, offsets, data = canonical(keys)
        return Streams(self.secret, kind, offsets, data)

    def __repr__(self) -> str:
        return f"<KeyRule by {self.law}: secret not shown>"


def canonical(keys: pa.Array) -> tuple[int, Array, Array]:
    """Give the kind of some keys, and the bytes of each.

    Returns
    -------
    kind : int
    offsets : int64 ndarray of shape (keys + 1,)
    data : uint8 ndarray
    """
    keys = _listed(keys)
    if pt.is_boolean(keys.type):
        return _BOOLEAN, *_fixed(keys.cast(pa.uint8()), 1)
    if pt.is_integer(keys.type):
        return _INTEGER, *_fixed(keys.cast(pa.int64()), 8)
    texts = keys.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    bytes_ = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    if not len(texts):
        return _TEXT, np.zeros(1, np.int64), bytes_
    # An array may be a slice: its offsets begin at ``texts.offset``.
    first = texts.offset
    return _TEXT, np.frombuffer(offsets, np.int64)[first : first + len(texts) + 1], bytes_


def _listed(keys: pa.Array) -> pa.Array:
    """Keys one by one, in a form that Arrow can filter: not in dictionaries, and not as views."""
    if pt.is_dictionary(keys.type):
        keys = keys.cast(keys.type.value_type)
    return keys.cast(pa.large_string()) if pt.is_string_view(keys.type) else keys


def _fixed(numbers: pa.Array, width: int) -> tuple[Array, Array]:
    """Offsets and bytes of numbers of one width, the lowest byte first."""
    values = np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False))
    if values.itemsize != width:
        raise InternalError("A key has another width than its type.")
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return np.arange(len(values) + 1) * width, little.view(np.uint8)
