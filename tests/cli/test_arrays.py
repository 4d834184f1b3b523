"""Inputs as text: types, values, files, and what is wrong with them."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pytest

from graphc.base.dtypes import numbers
from graphc.cli.arrays import (
    Fill,
    fitting_value,
    parse_type,
    parse_types,
    read_array,
    read_inputs,
    read_value,
    specs_at,
    split_binding,
)
from graphc.cli.console import UsageError
from graphc.compiler.example_arrays import random_array
from graphc.errors import ArgumentError, ArtifactError, DTypeError, ShapeError
from graphc.files.manifest import TensorSpec

X = TensorSpec("x", "f32", (2, 3))
I = TensorSpec("i", "i64", (2,))  # noqa: E741
S = TensorSpec("s", "f32", ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x:f32[1,28,28]", "x: f32[1,28,28]"),
        (" x : f32 [1]", None),
        ("x:float32[ 1, 2 ]", "x: f32[1,2]"),
        ("x:i64[]", "x: i64[]"),
        ("x:bool", "x: bool[]"),
        ("x.0:f32[0,3]", "x.0: f32[0,3]"),
        ("x", None),
        ("x:f99[1]", None),
        ("x:f32[1,,2]", None),
        ("x:f32[-1]", None),
        ("x:f32[99999999999,99999999999]", None),
        ("x:f32[" + "1," * 70 + "1]", None),
        (":f32[1]", None),
    ],
)
def test_types(text: str, expected: str | None):
    if expected is None:
        with pytest.raises(UsageError, match=r"--input"):
            parse_type(text)
    else:
        assert str(parse_type(text)) == expected


def test_types_with_named_dimensions():
    specs = parse_types(["x:f32[batch=1..64,time=2..512,8]", "mask:f32[batch,time]", "y:f32[16*side=1..40,2*time]"])
    assert [str(s) for s in specs] == ["x: f32[batch,time,8]", "mask: f32[batch,time]", "y: f32[16*side,2*time]"]
    assert [s.shape for s in specs_at(specs, {"batch": 3})] == [(3, 32, 8), (3, 32), (512, 64)]
    assert random_array(specs[0], 0).shape == (32, 32, 8)
    for sizes, message in (
        ({"side": 41}, "side is 41, out of its range 1"),
        ({"depth": 1}, "unknown dimension 'depth'"),
    ):
        with pytest.raises(UsageError, match=message):
            specs_at(specs, sizes)


@pytest.mark.parametrize(
    "texts",
    [["x:f32[batch]"], ["x:f32[n=1..]"], ["x:f32[n=4..2]"], ["x:f32[n=1..4]", "y:f32[n=1..5]"], ["x:f32[2n]"]],
)
def test_dimensions_that_are_none(texts: list[str]):
    with pytest.raises(UsageError, match="are not dimensions"):
        parse_types(texts)


def test_values_for_named_dimensions():
    (spec,) = parse_types(["x:f32[batch=1..64,2]"])
    assert read_inputs(["x=ones"], [spec], {"batch": 3})[0].shape == (3, 2)
    assert read_inputs(["x=[[1,2]]"], [spec])[0].shape == (1, 2)
    with pytest.raises(ShapeError, match=r"has shape \[1, 3\], the model takes \[batch, 2\]"):
        read_inputs(["x=[[1,2,3]]"], [spec])


def test_names_of_values():
    assert split_binding("x=zeros", ["x", "y"]) == ("x", "zeros")
    assert split_binding("@a=b.npy", ["x"]) == ("x", "@a=b.npy")
    assert split_binding("zeros", ["x"]) == ("x", "zeros")
    with pytest.raises(UsageError, match="names no input"):
        split_binding("zeros", ["x", "y"])
    with pytest.raises(ArgumentError, match="unknown input 'z'\n  try    choose one of x, y"):
        split_binding("z=1", ["x", "y"])


def test_values():
    np.testing.assert_array_equal(read_value("zeros", X), np.zeros((2, 3)))
    np.testing.assert_array_equal(read_value("ones", I), [1, 1])
    np.testing.assert_array_equal(read_value("[[1,2,3],[4,5,6.5]]", X), [[1, 2, 3], [4, 5, 6.5]])
    np.testing.assert_array_equal(read_value("[1, -2]", I), [1, -2])
    assert read_value("2", S) == 2
    for text in ("zeros", "ones", "random", "[[1,2,3],[4,5,6]]"):
        assert read_value(text, X).dtype == np.float32
    np.testing.assert_array_equal(read_value("random", X), read_value("random:0", X))
    assert not np.array_equal(read_value("random:1", X), read_value("random:2", X))


TENTH = 0.10009765625
"""The bf16 next to 0.1."""


def test_values_of_narrow_floats_are_numbers():
    spec = TensorSpec("x", "bf16", (2,))
    for text, wanted in (("[1.5, -3]", [1.5, -3]), ("ones", [1, 1]), ("zeros", [0, 0]), ("[0.1, 2]", [TENTH, 2])):
        assert numbers(read_value(text, spec)).tolist() == wanted
    assert read_value("[0.1, 2]", TensorSpec("x", "f16", (2,))).tolist() == [0.0999755859375, 2]


def test_arrays_of_files_are_rounded_to_bf16(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.float32([0.1, 2]))
    np.save(tmp_path / "wide.npy", np.float64([0.1, 2]))
    spec = TensorSpec("x", "bf16", (2,))
    assert numbers(read_value(f"@{tmp_path}/a.npy", spec)).tolist() == [TENTH, 2]
    with pytest.raises(DTypeError, match=r"takes bfloat16\n  try    save array.astype\(np.float32\)"):
        read_value(f"@{tmp_path}/wide.npy", spec)


def test_whole_numbers_beyond_i64():
    spec = TensorSpec("x", "u64", (2,))
    assert read_value("[1, 18446744073709551615]", spec).tolist() == [1, 2**64 - 1]
    with pytest.raises(DTypeError, match="not integers"):
        read_value("[-1, 18446744073709551615]", spec)


@pytest.mark.parametrize(
    ("text", "spec", "error", "message"),
    [
        ("nonsense", X, UsageError, "'nonsense' is not a value"),
        ("random:x", X, UsageError, "the seed is not a number"),
        ("[1,2]", X, ShapeError, r"has shape \[2\], the model takes \[2, 3\]"),
        ("[[1,2],[3]]", I, UsageError, "is not a value"),
        ('["a","b"]', I, DTypeError, "not numbers"),
        ("[1.5, 2]", I, DTypeError, "not integers"),
        ("null", S, DTypeError, "not numbers"),
    ],
)
def test_wrong_values(text: str, spec: TensorSpec, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        read_value(text, spec)


def test_files(tmp_path: Path):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "one.npz", k=array)
    np.savez(tmp_path / "many.npz", k=array, other=array + 1)
    for name in ("a.npy", "one.npz", "one.npz:k", "many.npz:k"):
        np.testing.assert_array_equal(read_value(f"@{tmp_path / name}", X), array)
    with pytest.raises(UsageError, match=r"no array 'z'\n  try    .*many.npz:KEY with one of k, other"):
        read_array(f"{tmp_path}/many.npz:z")
    with pytest.raises(UsageError, match="has no array ''"):
        read_array(f"{tmp_path}/many.npz")
    with pytest.raises(FileNotFoundError):
        read_array(str(tmp_path / "missing.npy"))


def test_wrong_types_in_files(tmp_path: Path):
    np.save(tmp_path / "d.npy", np.zeros((2, 3)))
    with pytest.raises(
        DTypeError, match=r"has element type float64, the model takes float32\n  try    save array.astype"
    ):
        read_value(f"@{tmp_path}/d.npy", X)
    np.save(tmp_path / "s.npy", np.zeros((3, 2), np.float32))
    with pytest.raises(ShapeError, match=r"has shape \[3, 2\]"):
        read_value(f"@{tmp_path}/s.npy", X)


class Bomb:
    """Unpickling this would create a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_in_a_file_is_executed(tmp_path: Path):
    trap = tmp_path / "executed"
    np.save(tmp_path / "objects.npy", np.array([Bomb(trap)], dtype=object), allow_pickle=True)
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps(Bomb(trap)))
    for name, text in (("objects.npy", "no numbers"), ("pickle.npy", "not a .npy file")):
        with pytest.raises(ArtifactError, match=text):
            read_array(str(tmp_path / name))
    assert not trap.exists()


def test_damaged_files(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.zeros(100, np.float32))
    np.savez(tmp_path / "a.npz", k=np.zeros(100, np.float32))
    for name in ("a.npy", "a.npz"):
        content = (tmp_path / name).read_bytes()
        for damaged in (b"", content[: len(content) // 2], b"\xff" * 64):
            (tmp_path / name).write_bytes(damaged)
            with pytest.raises(ArtifactError):
                read_array(str(tmp_path / name))


def test_all_inputs():
    found = read_inputs(["i=[3,4]", "x=ones"], [X, I])
    np.testing.assert_array_equal(found[0], np.ones((2, 3)))
    np.testing.assert_array_equal(found[1], [3, 4])
    with pytest.raises(ArgumentError, match=r"no value for i: i64\[2\]\n  try    pass --input i=\[1,1\], or --fill"):
        read_inputs(["x=ones"], [X, I])
    with pytest.raises(ArgumentError, match="given twice"):
        read_inputs(["x=ones", "x=zeros"], [X])
    assert read_inputs([], []) == []


def test_inputs_that_are_missing_are_told_together_with_values_that_fit():
    specs = parse_types(["x:f32[1,3,8,8]", "ids:i64[1,4]", "t:f32", "on:bool", "pos:int=0..9", "h:f32[9,9]"])
    with pytest.raises(ArgumentError) as caught:
        read_inputs(["on=true"], specs)
    assert caught.value.what.startswith("no value for x: f32[1,3,8,8], ids: i64[1,4], t: f32[], pos: int = pos, h:")
    assert caught.value.remedy == (
        "pass --input x=@picture.png --input ids=[[1,1,1,1]] --input t=0.5 --input pos=3 --input h=@h.npy, "
        "or --fill random for all"
    )
    for value, spec in (("[[1,1,1,1]]", specs[1]), ("0.5", specs[2]), ("true", specs[3])):
        assert fitting_value(spec) == value and read_value(value, spec).shape == spec.shape


def test_what_is_not_given_is_filled():
    found = read_inputs(["i=[3,4]"], [X, I], fill=Fill("ones"))
    np.testing.assert_array_equal(found[0], np.ones((2, 3), np.float32))
    first, second = (read_inputs([], [X, I], fill=Fill("random", seed)) for seed in (0, 1))
    assert not np.array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[0], read_inputs(["x=random:0"], [X])[0])


def test_numbers_that_are_sizes():
    specs = parse_types(["x:f32[4]", "pos:int=0..19", "stop:int=pos + 1", "last:int=end=1..40"])
    assert [str(s) for s in specs] == ["x: f32[4]", "pos: int = pos", "stop: int = pos + 1", "last: int = end"]
    assert [s.equals for s in specs_at(specs, {"pos": 3})] == [None, 3, 4, 32]
    assert random_array(specs[1], 0) == 19
    assert read_inputs(["x=ones", "last=7"], specs, {"pos": 5})[1:] == [5, 6, 7]
    assert read_inputs(["x=ones", "pos=2", "stop=3", "last=zeros"], specs)[1:] == [2, 3, 0]
    with pytest.raises(ArgumentError, match="no value for pos: int = pos"):
        read_inputs(["x=ones", "last=7"], specs)
    with pytest.raises(DTypeError, match="are not integers"):
        read_inputs(["pos=2.5"], specs)


@pytest.mark.parametrize("text", ["pos:int", "pos:int=7", "pos:int=a", "pos:int=5..2", "1:int=0..3"])
def test_numbers_that_are_none(text: str):
    with pytest.raises(UsageError, match="--input"):
        parse_type(text)


def test_standard_input(monkeypatch: pytest.MonkeyPatch):
    file = io.BytesIO()
    np.save(file, np.arange(2, dtype=np.float32))
    file.seek(0)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
    spec = TensorSpec("x", "f32", (2,))
    assert read_value("-", spec).tolist() == [0, 1]
    with pytest.raises(UsageError, match=r"'x': standard input is empty\n.*pipe one .npy file, .*--input x=- < x.npy"):
        read_value("-", spec)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1 2 3")))
    with pytest.raises(ArtifactError, match="standard input"):
        read_value("-", spec)
