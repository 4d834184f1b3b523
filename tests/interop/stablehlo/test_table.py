"""The table of operations and the page that lists them."""

import re
from pathlib import Path

from graphc.interop.stablehlo.table import FAMILIES, TABLE, TARGETS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "from_jax.md"


def test_the_page_lists_every_operation_with_a_rule():
    text = PAGE.read_text()
    names = {*re.findall(r"`((?:chlo\.|func\.|sdy\.)?[a-z_0-9]+)`", text)}
    missing = {name.removeprefix("stablehlo.") for name in TABLE} - names
    assert missing == set()
    assert len(FAMILIES) == 10


def test_functions_of_lapack_have_rules_for_all_element_types():
    for name in ("getrf", "potrf", "geqrf", "gesdd", "trsm"):
        assert {f"lapack_{letter}{name}_ffi" for letter in "sdcz"} <= {*TARGETS}
