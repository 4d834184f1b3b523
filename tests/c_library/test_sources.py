"""Sources of libraries: entries of model files."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphc
from graphc.base.errors import ArgumentError
from graphc.c_library.sources import RUN, changing, sources_of
from graphc.files import model_content
from tests.c_library.nets import NETS, Bag


def test_the_only_entry_is_called_run(tmp_path: Path):
    net = NETS["decoder"]
    graphc.export(net.model(), *net.calls[0], path=tmp_path / "net.gcm")
    stored = model_content.load(tmp_path / "net.gcm")
    (source,) = sources_of(stored)
    assert source.name == RUN and source.spec.inputs[0].name == "token"
    assert changing(stored, [source]) == {"keys", "values", "count"}
    frozen, added = source.made(changing(stored, [source]), lambda graph: graph)
    assert not added
    kept = {v.name for v in frozen.inputs}
    assert len(kept) == 4


def test_entries_are_chosen_by_name(tmp_path: Path):
    model, index = Bag(), graphc.zeros(2, 4, dtype=graphc.int64)
    graphc.export({"a": graphc.Entry(model, index), "b": graphc.Entry(model, index)}, path=tmp_path / "net.gcm")
    stored = model_content.load(tmp_path / "net.gcm")
    assert [s.name for s in sources_of(stored)] == ["a", "b"]
    assert [s.name for s in sources_of(stored, ["b", "b"])] == ["b"]
    with pytest.raises(ArgumentError, match="no entry 'c'"):
        sources_of(stored, ["c"])
    with pytest.raises(ArgumentError, match="at least one entry"):
        sources_of(stored, [])


def test_a_chain_of_programs_is_no_function_of_a_library(tmp_path: Path):
    graphc.export(lambda x: x[x > 0], graphc.ones(3), path=tmp_path / "net.gcm")
    with pytest.raises(ArgumentError, match="a function of a library is one program") as caught:
        sources_of(model_content.load(tmp_path / "net.gcm"))
    assert "export it to a .gcm file" in str(caught.value)
