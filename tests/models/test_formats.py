"""Formats: the suffix says which, an unknown one is an error that names them all, options go with theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.models.formats import GCM, ONNX, check_options, format_of


@pytest.mark.parametrize(("name", "wanted"), [("net", GCM), ("net.gcm", GCM), ("a.b/net.onnx", ONNX)])
def test_the_suffix_says_which_format(name: str, wanted: str):
    assert format_of(name) == wanted


def test_an_unknown_suffix_names_the_formats(tmp_path: Path):
    with pytest.raises(
        ArgumentError, match=r"graphc writes \.gcm and \.onnx files, no \.pb\n  try    write net\.gcm or net"
    ):
        gc.export(nn.Linear(2, 3), gc.ones(1, 2), path=tmp_path / "net.pb")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("net.onnx", {"native": True}, r"native is for \.gcm files\n  try    write net\.gcm"),
        ("net.onnx", {"precision": "int8"}, "precision is for"),
        ("net.onnx", {"target": "avx2"}, "target is for"),
        ("net.gcm", {"opset": 20}, r"opset is for \.onnx files\n  try    write net\.onnx"),
    ],
)
def test_options_of_the_other_format_are_refused(tmp_path: Path, name: str, options: dict, message: str):
    with pytest.raises(ArgumentError, match=message):
        gc.export(nn.Linear(2, 3), gc.ones(1, 2), path=tmp_path / name, **options)


def test_options_that_are_not_given_are_no_matter():
    check_options("net.onnx", GCM, {"native": False, "passes": ()})
