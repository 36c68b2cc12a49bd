"""Trees of labels: how they are read, cut and refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.basics.structs import from_bytes, from_plain, to_bytes
from sfumato.domain.categories import cut, depth_of, fanouts, plain_tree

REGIONS = {"Bavaria": ["Munich", "Nuremberg"], "Hesse": ["Frankfurt"]}
DEEP = {"Germany": REGIONS, "Norway": {"Oslo": ["Frogner", "Sagene"]}}


def test_a_tree_is_cut_at_each_level() -> None:
    tree = plain_tree(DEEP)
    assert depth_of(tree) == 3
    assert [label for label, _ in cut(tree, 1)] == ["Germany", "Norway"]
    assert [label for label, _ in cut(tree, 2)] == ["Bavaria", "Hesse", "Oslo"]
    leaves = ["Munich", "Nuremberg", "Frankfurt", "Frogner", "Sagene"]
    assert [label for label, _ in cut(tree, 3)] == leaves
    assert cut(tree, 1)[0] == ("Germany", ("Munich", "Nuremberg", "Frankfurt"))
    assert fanouts(tree) == ((2,), (2, 1), (2, 1, 2))


def test_pairs_as_files_hold_them_are_the_same_tree() -> None:
    pairs = [["Bavaria", ["Munich", "Nuremberg"]], ["Hesse", ["Frankfurt"]]]
    assert plain_tree(pairs) == plain_tree(REGIONS)
    assert sf.Categories(tree=pairs) == sf.Categories(tree=REGIONS)


@pytest.mark.parametrize(
    ("tree", "obstacle"),
    [
        ({}, "a branch of it is empty"),
        ({"a": []}, "a branch of it is empty"),
        (["a"], "it is no dict of branches"),
        ("a", "it is no dict of branches"),
        ({"a": 3}, "neither a dict nor a list"),
        ({"a": "bc"}, "neither a dict nor a list"),
        ({"a": [1.5]}, "neither text nor integers"),
        ({"a": ["b"], "c": ["b"]}, "a child has one parent"),
        ({"a": {"b": ["c"]}, "d": {"b": ["e"]}}, "a child has one parent"),
        ({"a": ["b"], "c": {"d": ["e"]}}, "some of its leaves are 2 levels deep, and others 3"),
    ],
)
def test_what_is_no_tree_is_refused(tree: object, obstacle: str) -> None:
    with pytest.raises(sf.UsageError, match=obstacle):
        sf.Categories(tree=tree)


def test_endless_nesting_is_refused() -> None:
    tree: dict[str, object] = {}
    tree["a"] = tree
    with pytest.raises(sf.UsageError, match="more than 20 levels"):
        sf.Categories(tree=tree)


def test_a_label_may_have_the_name_of_its_parent() -> None:
    tree = {"Luxembourg": ["Luxembourg"], "Norway": ["Oslo"]}
    assert sf.Categories(tree=tree).all_labels == ("Luxembourg", "Oslo")


def test_levels_are_axes_of_the_domain_from_the_top() -> None:
    place = sf.Categories(tree=DEEP, levels=["country", "region"])
    domain = sf.Domain(place=place, age=sf.Interval(0, 90))
    assert list(domain) == ["country", "region", "place", "age"]
    assert list(sf.Domain(place=sf.Categories(tree=DEEP))) == ["place.1", "place.2", "place"]
    assert sf.Domain(dict(domain)) == domain
    assert domain.columns == ("place", "age")
    assert "Level" not in repr(domain)


@pytest.mark.parametrize(
    ("levels", "obstacle"),
    [(["a", "b"], "each needs a name"), ("region", "each needs a name"), ([""], "needs a name")],
)
def test_names_of_levels_fit_the_tree(levels: list[str], obstacle: str) -> None:
    with pytest.raises(sf.UsageError, match=obstacle):
        sf.Categories(tree=REGIONS, levels=levels)


def test_names_of_levels_are_names_of_nothing_else() -> None:
    with pytest.raises(sf.UsageError, match="two levels have one name"):
        sf.Categories(tree=DEEP, levels=["a", "a"])
    with pytest.raises(sf.UsageError, match="another axis has that name"):
        sf.Domain(place=sf.Categories(tree=REGIONS, levels=["age"]), age=sf.Interval(0, 90))
    with pytest.raises(sf.UsageError, match="only a tree has levels"):
        sf.Categories(["a"], levels=["b"])


def test_labels_beside_a_tree_are_its_leaves() -> None:
    place = sf.Categories(tree=REGIONS)
    assert sf.Categories(place.labels, tree=REGIONS) == place
    with pytest.raises(sf.UsageError, match="other ones than the leaves"):
        sf.Categories(["Munich"], tree=REGIONS)


def test_a_level_counts_the_rows_of_its_leaves() -> None:
    place = sf.Categories(tree=REGIONS, levels=["region"], other="abroad", missing="unknown")
    rows = ["Munich", " Nuremberg ", "Frankfurt", "Oslo", None, "Munich"]
    source = sf.source(pa.table({"place": rows}), sf.Domain(place=place), name="rows")
    publisher = sf.Publisher(source, budget="1000", ledger=None)
    counted = publisher.release(sf.Histogram("region"), epsilon="200")
    assert counted.values.tolist() == [3, 1, 1, 1]
    of_leaves = publisher.release(sf.Histogram("place"), epsilon="200")
    assert np.array_equal(of_leaves.values, [2, 1, 1, 1, 1])


def test_plans_and_files_hold_trees() -> None:
    place = sf.Categories(tree=DEEP, levels=["country", "region"])
    plan = {"type": "categories", "tree": DEEP, "levels": ["country", "region"]}
    assert from_plain(plan, sf.Categories) == place
    assert from_bytes(to_bytes(place), sf.Categories) == place
