"""The pickle machine: plain data come back as they were, and whatever could run code is refused by name."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import subprocess
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.checkpoints.pickle_machine import Known, Machine
from graphc.errors import ArtifactError
from graphc.nn.module_state import StateDict

KNOWN = {"collections.OrderedDict": Known("collections.OrderedDict", lambda: StateDict())}

SCALARS = st.none() | st.booleans() | st.integers(-(1 << 80), 1 << 80) | st.floats(allow_nan=False) | st.text()
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.booleans() | st.none(), inner)
    ),
)


def load(data: bytes) -> object:
    return Machine(KNOWN, lambda identity: ("persistent", identity)).load(data)


@given(TREES, st.sampled_from([2, 3, 4, 5]))
def test_plain_data_come_back(tree, protocol):
    assert load(pickle.dumps(tree, protocol)) == tree


def test_shared_and_cyclic_lists():
    inner: list[object] = [1]
    both = load(pickle.dumps([inner, inner], 2))
    assert both[0] is both[1]
    inner.append(inner)
    cycle = load(pickle.dumps(inner, 2))
    assert cycle[1] is cycle


def test_ordered_dictionaries():
    found = load(pickle.dumps(OrderedDict(b=1, a=2), 2))
    assert list(found.items()) == [("b", 1), ("a", 2)]


def test_metadata_of_state_dictionaries():
    state = OrderedDict(a=1)
    state._metadata = {"": {"version": 2}}
    found = load(pickle.dumps(state, 2))
    assert found._metadata == {"": {"version": 2}}
    state.extra = 1
    with pytest.raises(ArtifactError, match="sets attributes"):
        load(pickle.dumps(state, 2))


class Reduce:
    def __init__(self, *parts):
        self.parts = parts

    def __reduce__(self):
        return self.parts


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    ("trap", "name"),
    [
        (Reduce(os.system, ("touch trapped",)), r"posix\.system"),
        (Reduce(eval, ("open('trapped', 'w')",)), "__builtin__.eval|builtins.eval"),
        (Reduce(exec, ("open('trapped', 'w')",)), "__builtin__.exec|builtins.exec"),
        (Reduce(subprocess.Popen, (["touch", "trapped"],)), "(subprocess|commands).Popen"),
        (Reduce(getattr, ("x", "upper")), r"getattr"),
        (os.system, r"posix\.system"),
        (Path("x"), "pathlib.PosixPath"),
        (1j, "__builtin__.complex|builtins.complex"),
        ({1, 2}, "__builtin__.set|builtins.set|EMPTY_SET"),
        (b"bytes", "_codecs.encode|BYTES"),
        (bytearray(b"bytes"), "bytearray|BYTEARRAY"),
        (range(3), "xrange|range"),
    ],
)
def test_everything_else_is_refused_by_name(tmp_path: Path, monkeypatch, protocol, trap, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match=name):
        load(pickle.dumps({"a": [trap]}, protocol))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"cos\nsystem\n(S'touch trapped'\ntR.", r"os\.system"),
        (b"cbuiltins\neval\n.", r"builtins\.eval"),
        (b"(ios\nsystem\n.", "INST"),
        (b"(S'x'\n.", "STRING"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"\x80\x02)\x81.", "empty stack"),
        (b"Pabc\n.", "PERSID"),
        (b"\x80\x02ccollections\nOrderedDict\n.", None),
        (b"\x80\x02K\x01K\x02\x86K\x03R.", "calls a tuple|calls a int"),
        (b"\x80\x02]ccollections\nOrderedDict\na.", "holds collections.OrderedDict"),
        (b"\x80\x02}(X\x01\x00\x00\x00aK\x01\x86K\x02s.", "damaged"),
        (b"\x80\x02}K\x01K\x02\x86K\x03s.", "key of class tuple"),
        (b"\x80\x02K\x01K\x02a.", "appends to a int"),
        (b"\x80\x02}(K\x01u.", "sets entries"),
        (b"\x80\x02t.", "no mark"),
        (b"\x80\x02.", "empty stack"),
        (b"\x80\x02(a.", "empty stack"),
        (b"\x80\x02h\x05.", "damaged: KeyError"),
        (b"\x80\x02}K\x01b.", "sets attributes of a dict"),
        (b"\x80\x02X\xff\xff\xff\x7fab", "damaged"),
        (b"\x80\x02\x8b\xff\xff\xff\x7fab", "damaged"),
        (b"\x80\x02K\x01", "damaged|truncated"),
        (b"\xff\xff", "damaged"),
        (b"", "damaged|truncated"),
        (b"\x80\x02X\x01\x00\x00\x00\xff.", "damaged"),
    ],
)
def test_wrong_pickles(tmp_path: Path, monkeypatch, data, text):
    monkeypatch.chdir(tmp_path)
    if text is None:
        assert isinstance(load(data), Known)
    else:
        with pytest.raises(ArtifactError, match=text):
            load(data)
    assert not os.listdir(tmp_path)


def test_large_memo_numbers_take_no_memory():
    assert load(b"\x80\x02K\x07r\xff\xff\xff\xff0".replace(b"0", b"") + b"j\xff\xff\xff\xff.") == 7


@given(st.binary(max_size=60))
def test_random_bytes_are_refused_or_plain(data):
    with contextlib.suppress(ArtifactError):
        load(b"\x80\x02" + data)


@given(st.data())
def test_changed_bytes_are_refused_or_plain(data):
    good = pickle.dumps(OrderedDict(a=[1, (2.5, "x")], b={"c": None}), 2)
    at = data.draw(st.integers(0, len(good) - 1))
    damaged = good[:at] + bytes([data.draw(st.integers(0, 255))]) + good[at + 1 :]
    with contextlib.suppress(ArtifactError):
        load(damaged)


def test_deep_nesting_and_many_keys_are_no_trap():
    deep = b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
    found = load(deep)
    assert isinstance(found, list)
    bomb = b"\x80\x02K\x01\x85" + b"q\x00h\x00\x86" * 60 + b"}q\x01h\x00K\x01s."
    with pytest.raises(ArtifactError, match="key of class tuple"):
        load(bomb)


def test_persistent_ids_are_asked_for():
    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return ("storage", 1) if obj == "tensor" else None

    stream = io.BytesIO()
    Pickler(stream, 2).dump(["tensor"])
    assert load(stream.getvalue()) == [("persistent", ("storage", 1))]
