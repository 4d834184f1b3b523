"""CSV files: numbers of every type, headers, chosen columns, and errors that name line and column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphc.data import read_csv
from graphc.errors import ArgumentError, ArtifactError, DTypeError


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_header_and_numbers(tmp_path: Path):
    table = read_csv(write(tmp_path, 'height,"weight, kg"\n1.5, 70\n\n-2e-3,nan\n'))
    assert table.columns == ("height", "weight, kg")
    assert table.values.dtype == np.float32
    np.testing.assert_array_equal(table.values, np.float32([[1.5, 70], [-2e-3, np.nan]]))


def test_without_header(tmp_path: Path):
    path = write(tmp_path, "\ufeff1;2;3\r\n4;5;6\r\n")
    table = read_csv(path, dtype="int64", delimiter=";")
    assert table.columns == ("0", "1", "2")
    assert table.values.tolist() == [[1, 2, 3], [4, 5, 6]]
    named = read_csv(path, dtype="int64", delimiter=";", header=True)
    assert (named.columns, named.values.tolist()) == (("1", "2", "3"), [[4, 5, 6]])


def test_chosen_columns(tmp_path: Path):
    path = write(tmp_path, "a,b,name\n1,2,x\n3,4,y\n")
    assert read_csv(path, columns=["b", 0]).values.tolist() == [[2, 1], [4, 3]]
    assert read_csv(path, columns=["b", "a"]).columns == ("b", "a")
    assert read_csv(path, columns=[-2]).columns == ("b",)
    with pytest.raises(ArtifactError, match="line 2, column name: 'x' is not a float32"):
        read_csv(path)
    for column in ("c", 3, -4):
        with pytest.raises(ArgumentError, match="no unique column"):
            read_csv(path, columns=[column])


def test_a_header_alone(tmp_path: Path):
    table = read_csv(write(tmp_path, "a,b\n"))
    assert table.values.shape == (0, 2)


def test_empty_entries(tmp_path: Path):
    path = write(tmp_path, "a,b\n1,\n,4\n")
    with pytest.raises(ArtifactError, match="line 2, column b: the entry is empty"):
        read_csv(path)
    assert read_csv(path, missing=-1).values.tolist() == [[1, -1], [-1, 4]]


@pytest.mark.parametrize(
    ("text", "dtype", "message"),
    [
        ("a\n1_000\n", "float32", "'1_000' is not a float32"),
        ("a\n1.5\n", "int32", "line 2, column a: '1.5' is not a int32"),
        ("a\n300\n", "uint8", "300 is out of range for uint8"),
        ("a\n-1\n", "uint8", "-1 is out of range for uint8"),
        ("a,b\n1,2\n1\n", "float32", "line 3: 1 entries, the first line has 2"),
        ("", "float32", "no rows"),
        ('a\n"1\n', "float32", "not a CSV file"),
        (b"a\n\xff\n", "float32", "not UTF-8 text"),
        ("a\n" + "9" * 200_000 + "\n", "float32", "not a CSV file: field larger"),
    ],
)
def test_wrong_content(tmp_path: Path, text, dtype, message):
    with pytest.raises(ArtifactError, match=message):
        read_csv(write(tmp_path, text), dtype=dtype)


def test_wrong_arguments(tmp_path: Path):
    with pytest.raises(DTypeError):
        read_csv(write(tmp_path, "1\n"), dtype="float8")
    with pytest.raises(FileNotFoundError):
        read_csv(tmp_path / "none.csv")
