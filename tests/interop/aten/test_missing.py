"""Operators of PyTorch's core set have a rule, or there is a reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.interop.aten.missing import MISSING
from graphc.interop.aten.table import find

torch: Any = pytest.importorskip("torch")


def core() -> set[str]:
    """The overloads that PyTorch marks as its core set."""
    found: set[str] = set()
    for name in torch._C._dispatch_get_all_op_names():
        space, _, rest = name.partition("::")
        operator, _, overload = rest.partition(".")
        if space == "aten":
            known = getattr(getattr(torch.ops.aten, operator), overload or "default")
            found |= {str(known)} if torch.Tag.core in known.tags else set()
    return found


def test_every_core_operator_has_a_rule_or_a_reason():
    names = core()
    assert len(names) >= 190
    assert {name for name in names if find(name) is None} == set(MISSING)
    assert all(MISSING.values())
