"""The entry says of the guarantee what the releases say, and nothing that they do not know."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import sfumato as sf
from reports.disclosure import visits
from sfumato.publishing.verifying import Publication
from sfumato.reports.disclosure.disclose import counted, missing
from sfumato.reports.disclosure.entry import entry_tree as entry
from sfumato.reports.disclosure.evidence import gathered
from sfumato.reports.disclosure.fields import leaves, plain


def deployment(found, facts=None):
    """The values of an entry, by the last part of their names."""
    tree = entry(found, facts or Publication(), "visits")
    visits.require_entry(plain(tree))
    return {place.rpartition(".")[2]: field.value for place, field in leaves(tree)}


def published(cost, budget, **source):
    rows = sf.source(np.zeros((9, 1)), sf.Domain(x=sf.Interval(0, 4)), name="doc", **source)
    with sf.Publisher(rows, budget=budget) as publisher:
        return gathered([publisher.release(sf.Histogram("x"), **cost)])


@pytest.mark.parametrize(
    ("cost", "budget", "name", "numbers"),
    [
        ({"epsilon": "0.5"}, "1", "Pure DP", {"epsilon": 0.5}),
        ({"epsilon": "0.5"}, sf.ApproxDP(1, "1e-6"), "Pure DP", {"epsilon": 0.5}),
        ({"rho": "0.25"}, sf.ZCDP(1), "Zero-concentrated DP", {"rho": 0.25}),
        ({"epsilon": "1"}, sf.ZCDP(1), "Zero-concentrated DP", {"rho": 0.5}),
    ],
    ids=str,
)
def test_the_measure_is_that_of_the_account(cost, budget, name, numbers):
    tree = plain(entry(published(cost, budget), Publication(), "doc"))["deployment"]
    assert tree["dp_flavor"]["name"] == name
    assert tree["privacy_loss"]["privacy_parameters"] == numbers


def test_neighbours_are_named():
    said = deployment(published({"epsilon": 1}, 1))
    assert said["bound_on_input_distance"] == "1: one row is added or removed"
    assert said["input_metric"] == (
        "Symmetric distance: the number of rows in one table only (unbounded)."
    )
    assert said["privacy_unit"] == "Row-level"
    said = deployment(published({"epsilon": 1}, 1, neighbours="replace", rows_per_person=2))
    assert said["bound_on_input_distance"] == (
        "1: one person is replaced by another, with at most 2 rows, as the custodian states"
    )
    assert "The number of persons is public." in said["unprotected_quantities"]


def test_the_guarantees_of_all_answers_are_said(releases):
    said = deployment(gathered(releases))
    for release in releases:
        guarantee = release.guarantee
        assert guarantee.proof.not_covered in said["unprotected_quantities"]
        assert guarantee.counted in said["pre_processing_eda_hyperparameter_tuning"]
        assert guarantee.proof.sensitivity in said["mechanisms"]
        assert guarantee.proof.because in said["justification"]
        assert guarantee.proof.source in said["justification"]
        assert str(guarantee.unit) in said["privacy_unit_description"]
        assert guarantee.mechanism[1:] in said["mechanisms"]
    assert said["input_metric"].endswith("(unbounded). Rows with the same who are of one person.")
    assert said["release_type"] == "Many releases"
    assert "the total of" not in said["privacy_parameters_description"]
    assert "may have paid for others" in said["privacy_parameters_description"]


def test_a_stream_is_dynamic():
    rows = sf.source(np.zeros((1, 1)), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    with (
        sf.Publisher(rows, budget="1") as publisher,
        publisher.open(sf.Counter(9), epsilon="1", key="k") as stream,
    ):
        stream.push(3)
        said = deployment(gathered([stream.history()]))
    assert (said["release_type"], said["data_source_type"]) == ("Many releases", "Dynamic")


def test_one_charge_is_one_release():
    said = deployment(published({"epsilon": 1}, 1))
    assert (said["release_type"], said["data_source_type"]) == ("One release", "Static")
    facts = Publication(release_type="Many releases", data_source_type="Dynamic")
    said = deployment(published({"epsilon": 1}, 1), facts)
    assert (said["release_type"], said["data_source_type"]) == ("Many releases", "Dynamic")


def test_a_kind_from_elsewhere_is_left_to_a_person(releases, monkeypatch):
    """Nobody here knows what another package computes from its noise."""
    from sfumato.reports.disclosure import fields as wording

    filled, fields = counted(entry(gathered(releases), Publication(), "visits"))
    known = {tag: said for tag, said in wording.AFTERWARDS.items() if tag != "mean-release"}
    monkeypatch.setattr(wording, "AFTERWARDS", known)
    tree = entry(gathered(releases), Publication(), "visits")
    wanted = missing(tree)["deployment.accounting.post_processing"]
    assert "Mean of age: TODO: what was computed" in wanted
    assert counted(tree) == (filled - 1, fields)


def test_facts_do_not_change_what_was_promised(releases):
    """A person can add, and never replace what the releases say."""
    own = {"epsilon", "delta", "privacy_unit", "mechanisms", "bound_on_output_distance"}
    assert own.isdisjoint(Publication.__struct_fields__)
    notes = {"mechanisms": "And a prayer."}
    plainly = deployment(gathered(releases))
    noted = deployment(gathered(releases), msgspec.convert({"notes": notes}, Publication))
    assert noted["mechanisms"] == plainly["mechanisms"] + "\nAdded by hand: And a prayer."
    assert noted | {"mechanisms": ""} == plainly | {"mechanisms": ""}


def test_an_account_by_curves_states_its_total_and_how_it_adds_up(tmp_path):
    source = sf.source(np.array([[1.0], [2.5]]), sf.Domain(x=sf.Interval(0, 4)), name="t")
    total = sf.ApproxDP("2", "1e-6", composition="curves")
    with sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget=total) as publisher:
        answers = [
            publisher.release(sf.Histogram("x", bins=4), epsilon="0.02"),
            publisher.release(sf.Histogram("x", bins=2), rho="0.001"),
        ]
        publisher.release(sf.Histogram("x", bins=3), epsilon="0.02")
        evidence = gathered(answers, ledger=publisher.ledger)
    tree = entry(evidence, Publication(), "t")
    loss = plain(tree)["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 2.0, "delta": 1e-6}
    # Without a ledger, receipts say the same.
    assert gathered(answers[:1]).loss == evidence.loss
    assert deployment(gathered(answers[:1]))["composition"] == deployment(evidence)["composition"]
    described = loss["privacy_parameters_description"]
    assert "private at epsilon = 2, delta = 0.000001" in described
    assert "also paid for one further charge" in described
    assert "has spent" not in described
    assert "Renyi divergence" in deployment(evidence)["composition"]
