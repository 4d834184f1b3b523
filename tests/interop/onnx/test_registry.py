"""The table of operators: which rule serves which version."""

from collections.abc import Iterator

import pytest

from graphc.interop.onnx import registry
from graphc.interop.onnx.registry import find, host, op


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables that hold nothing else."""
    monkeypatch.setattr(registry, "TABLE", {})
    monkeypatch.setattr(registry, "HOST", {})
    yield


def test_the_newest_rule_that_is_not_newer_serves_a_version() -> None:
    @op("A", since=7)
    def old(x: object) -> None: ...

    @op("A", since=13)
    def new(x: object) -> None: ...

    assert [find("", "A", version) and find("", "A", version).rule for version in (6, 7, 12, 13, 28)] == [
        None,
        old,
        old,
        new,
        new,
    ]


def test_domains_have_operators_of_their_own() -> None:
    @op("A", domain="x")
    def rule() -> None: ...

    assert find("", "A", 20) is None and find("x", "A", 1) is not None


def test_one_version_is_entered_once() -> None:
    op("A")(lambda x: x)
    with pytest.raises(KeyError, match="already in the table"):
        op("A")(lambda x: x)


def test_an_entry_says_what_a_rule_asks_for() -> None:
    @op("A", host="shape", values=True)
    def rule(x: object, shape: object = None, *, axis: int = 0, call: object) -> None: ...

    entry = find("", "A", 1)
    assert entry is not None
    assert (entry.host, entry.values, entry.call, entry.inputs) == ({1}, True, True, ("x", "shape"))


def test_functions_of_arrays_are_in_a_table_beside() -> None:
    rule = host("A", "B")(lambda x: x)
    assert {("", "A"): rule, ("", "B"): rule} == registry.HOST
