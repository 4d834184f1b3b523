"""Names as identifiers of C."""

from __future__ import annotations

import pytest

from graphc.c_library.identifiers import distinct, identifier


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("net", "net"),
        ("output.0", "output_0"),
        ("int", "int_"),
        ("2d", "x2d"),
        ("größe", "gr__e"),
        ("", "x"),
        ("...", "x"),
        ("linux", "linux_"),
    ],
)
def test_a_name_becomes_an_identifier(name: str, wanted: str):
    assert identifier(name) == wanted
    assert wanted.isidentifier()


def test_names_stay_different_in_any_case():
    assert distinct(["x", "X", "x.0", "x_0", "net"], reserved=["net"]) == ["x", "X_2", "x_0", "x_0_2", "net_2"]
