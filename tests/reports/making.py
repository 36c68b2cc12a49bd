"""Releases for the tests of pages, and a reader of their structure."""

import re
from html.parser import HTMLParser

import msgspec
import numpy as np

from sfumato.answers.receipt import Receipt
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Categories, Domain, Interval
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed

DOMAIN = Domain(
    kind=Categories(["a", "b", "c"]),
    age=Interval(0, 100),
    lon=Interval(-74.3, -73.6),
    lat=Interval(40.5, 40.95),
)

VOID = {"meta", "link", "br", "hr", "img", "input", "path", "use", "image"}


def answered(question, cost=None, domain=DOMAIN, private=True):
    lattice = question.needs(domain).lattice
    rng = np.random.default_rng(2)
    cells = np.stack(
        [(rng.beta(2, 4, 4000) * axis.size).astype(np.int64) for axis in lattice.axes], axis=1
    )
    release = question.answer(
        Cube.of_cells(lattice, cells), Unit(), cost or PureDP("0.5"), PublicSeed(9)
    )
    return msgspec.structs.replace(
        release, guarantee=msgspec.structs.replace(release.guarantee, private=private)
    )


def receipted(release, entry=1, part="1 of 1", **changes):
    plain = {
        "account": "trips",
        "key": "k",
        "digest": "d" * 64,
        "entry_hash": "e" * 64,
        "time": f"2026-03-0{entry}T09:15:22Z",
    }
    plain |= {
        "charged": str(release.guarantee.measure),
        "source": "trips.parquet",
        "version": "0.1.0",
    }
    return msgspec.structs.replace(
        release, receipt=Receipt(entry=entry, part=part, **(plain | changes))
    )


class Outline(HTMLParser):
    """Headings in order, ids and references; checks that every element is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.headings, self.ids, self.attributes, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag
