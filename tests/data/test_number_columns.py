"""Columns of numbers are read as they are, and no error shows what is in them."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.data.describe import other_columns, read_numbers
from sfumato.errors import DataError, UsageError
from sfumato.risk import Choices

CANARY = "48151.62342"


@pytest.fixture(params=["parquet", "csv"])
def people(request, tmp_path):
    frame = pd.DataFrame({
        "name": ["a", "b", CANARY, "d", "e"],
        "wage": [1.0, 2.0, float(CANARY), 4.0, 5.0],
        "age": [30, 31, 32, 33, 34],
        "bonus": [1.5, None, 2.5, 3.5, 9.0],
        "member": [True, False, True, True, False],
    })  # fmt: skip
    path = tmp_path / f"people.{request.param}"
    frame.to_csv(path, index=False) if request.param == "csv" else frame.to_parquet(path)
    return path


def test_columns_of_numbers(people):
    found = read_numbers(people)
    assert list(found) == ["wage", "age", "bonus"]
    assert found["age"].tolist() == [30, 31, 32, 33, 34]
    assert np.isnan(found["bonus"]).tolist() == [False, True, False, False, False]
    assert other_columns(people, list(found)) == ["name", "member"]
    assert list(read_numbers(people, ["age"])) == ["age"]


def test_another_separator_is_named_and_the_line_is_not(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(f"{CANARY};wage;age\n1;2;3\n")
    for columns in (None, ["wage"]):
        with pytest.raises(DataError, match=r'has 2 semicolons.*--separator ";"') as caught:
            read_numbers(path, columns)
        assert CANARY not in str(caught.value)


def test_choosing_from_a_file_is_choosing_from_its_columns(people):
    choices = sf.choose(people, size=3, query="mean", columns=["wage", "age"])
    assert isinstance(choices, Choices)
    assert choices == sf.choose(read_numbers(people, ["wage", "age"]), size=3, query="mean")
    assert choices["age"].epsilon == sf.choose([30, 31, 32, 33, 34], 3).epsilon
    assert sf.choose(str(people), columns=["age"])["age"].size == 4


def test_missing_records(people):
    with pytest.raises(
        UsageError, match=r"'bonus': some records have no number .*--drop-missing"
    ) as caught:
        sf.choose(people, size=3)
    assert CANARY not in str(caught.value)
    with pytest.raises(UsageError, match="records are infinite") as caught:
        sf.choose([1.0, np.inf, 2.0, np.nan], missing="drop")
    assert "--drop-missing" not in str(caught.value)
    dropped = sf.choose(people, query="median", missing="drop")
    assert (dropped["bonus"].records, dropped["bonus"].size) == (4, 3)
    assert dropped["bonus"].epsilon == sf.choose([1.5, 2.5, 3.5, 9.0], 3, "median").epsilon
    assert sf.choose(pd.DataFrame({"x": [1, None, 2, 3]}), missing="drop")["x"].records == 3
    assert sf.choose([1.0, np.nan, 2.0, 3.0], missing="drop").records == 3


def test_refusals(people, tmp_path):
    for columns, words in (
        (["wages"], "did you mean 'wage'"),
        (["name"], "numbers"),
        (["member"], "numbers"),
    ):
        with pytest.raises(DataError, match=words) as caught:
            sf.choose(people, columns=columns)
        assert CANARY not in str(caught.value)
    with pytest.raises(DataError, match="no such file"):
        sf.choose(tmp_path / "nothing.csv")
    (tmp_path / "words.csv").write_text("a,b\nx,y\n")
    with pytest.raises(UsageError, match="no columns of numbers"):
        sf.choose(tmp_path / "words.csv")
    (tmp_path / "bare.csv").write_text("a,b\n")
    with pytest.raises(UsageError, match=r"0 records|no columns"):
        sf.choose(tmp_path / "bare.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match="empty"):
        sf.choose(tmp_path / "empty.csv")
    with pytest.raises(UsageError, match="missing"):
        sf.choose(people, missing="zero")
    with pytest.raises(UsageError, match="no column of that name"):
        sf.choose({"a": [1, 2, 3]}, columns=["b"])
    for nothing in ([], [1.0], np.zeros((3, 2)), None, 7, {}):
        with pytest.raises(UsageError):
            sf.choose(nothing)
