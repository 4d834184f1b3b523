"""Nesting of outputs, and invalid structures."""

from __future__ import annotations

import json
import re

import pytest

from graphc.errors import ArtifactError
from graphc.files.structure import check_structure, nest


def test_outputs_nest_as_the_structure_says():
    structure = {"dict": [["a", {"tuple": [1, {"list": [0, None]}]}], ["b", 0]]}
    check_structure(structure, 2)
    assert nest(structure, ["p", "q"]) == {"a": ("q", ["p", None]), "b": "p"}


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (1, "names output 1 of 1"),
        (-1, "names output -1 of 1"),
        ({"tuple": 3}, "unknown structure"),
        ({"set": []}, "unknown structure"),
        ({"dict": [[1, 0]]}, "pairs"),
        ("x", "unknown part"),
        (True, "unknown part"),
        (json.loads('{"list":[' * 70 + "0" + "]}" * 70), "nested deeper than 64"),
    ],
)
def test_structures_that_are_none_are_refused(structure: object, message: str):
    with pytest.raises(ArtifactError, match=re.escape(message)):
        check_structure(structure, 1)
