"""Where are the rows? Partitions: disjoint public boxes that cover the domain, with noisy counts.

* ``partitioner``: what all partitioners offer
* ``uniform``, ``adaptive`` (also the automatic one), ``privtree`` and ``fixed_depth`` (binary,
  median, multi-quantile): the partitioners
* ``growth``: trees that grow, and what each path has spent; ``geometry``: the boxes
* ``estimates``: from all noisy counts; ``ranges``: counts of ranges; ``release``: the answer

This package offers those of their names that are public: the stub of ``sfumato`` lists them.
"""

from __future__ import annotations

from sfumato.basics.lazily import imported, listed

_PLACES = {
    name: place
    for name, place in sorted(listed("sfumato").items())
    if place.startswith("sfumato.questions.partition.")
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return imported(_PLACES[name])


def __dir__() -> list[str]:
    return list(__all__)
