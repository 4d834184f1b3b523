"""Names of passes."""

import re

from graphc.compiler.pass_names import GRAPH_PASSES, standard_names


def test_names_of_passes_are_written_in_one_way():
    names = standard_names()
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", name) for name in names)
    assert {*GRAPH_PASSES} < {*names} and len({*names}) == len(names)
