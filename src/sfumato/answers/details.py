"""What pages, pictures, audits and other tools ask of a release, and its readers seldom do."""

from __future__ import annotations

from sfumato.basics import plain


class Details:
    """What tools need of a release, under the names that ``dir(release)`` leaves out.

    Nothing here is secret: a release holds what was paid for, and nothing else. ``dir`` lists the
    names. Which they are depends on the kind of answer, and may change between versions.

    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.array([[1.0], [3.0]]), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> release = sf.Publisher(src, budget="1").release(sf.Histogram("x", bins=4), epsilon="1")
    >>> release.details.noun, release.details.lattice.shape, "noun" in dir(release)
    ('count', (4,), False)
    """

    def __init__(self, release: object, title: str, names: frozenset[str]) -> None:
        self._release = release
        self._title = title
        self._names = names

    def __dir__(self) -> list[str]:
        return sorted(self._names)

    def __getattr__(self, name: str) -> object:
        # While it is copied it has no names yet.
        if not name.startswith("_") and name in self._names:
            detail: object = getattr(self._release, name)
            return detail
        raise AttributeError(f"a {type(self).__name__} has no {name!r}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<Details of {plain(self._title, 200)}: {', '.join(dir(self))}>"


def names_in_details(kind: type) -> frozenset[str]:
    """The names that a class of releases keeps for its details, and those that it inherits."""
    kept = (vars(cls).get("_in_details", ()) for cls in kind.__mro__)
    return frozenset(name for names in kept for name in names)
