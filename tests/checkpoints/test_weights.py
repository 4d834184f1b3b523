"""load_weights: a file as it comes from elsewhere goes into a model, exactly, and what was found is said."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, ArtifactError, StateDictError


def make() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


def loaded(path: Path, **options: Any) -> nn.Module:
    model = make()
    model.load_state_dict({n: gc.full_like(t, 9) for n, t in model.state_dict().items()})
    result = gc.load_weights(model, path, **options)
    assert not result.missing_keys
    return model


def same(model: nn.Module, other: nn.Module) -> bool:
    pairs = zip(model.state_dict().values(), other.state_dict().values(), strict=True)
    return all(a.numpy().tobytes() == b.numpy().tobytes() for a, b in pairs)


def test_weights_that_fit_are_loaded_without_a_word(tmp_path: Path):
    model = make()
    gc.save(model.state_dict(), tmp_path / "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(loaded(tmp_path / "a"), model)


def test_what_was_found_is_said(tmp_path: Path):
    model = make()
    state = {f"module.{name}": tensor for name, tensor in model.state_dict().items()}
    gc.save({"state_dict": state, "epoch": 3}, tmp_path / "a.ckpt")
    with pytest.warns(UserWarning) as said:
        assert same(loaded(tmp_path / "a.ckpt"), model)
    assert [str(w.message) for w in said] == [
        f"{tmp_path / 'a.ckpt'}: the weights are its entry 'state_dict'",
        f"{tmp_path / 'a.ckpt'}: 'module.' is removed from the names",
    ]
    assert {w.filename for w in said} == {__file__}


def test_several_that_fit(tmp_path: Path):
    model, other = make(), make()
    gc.save({"model": model.state_dict(), "ema": other.state_dict()}, tmp_path / "a")
    with pytest.raises(ArtifactError, match="'model', 'ema'"):
        gc.load_weights(make(), tmp_path / "a")
    with pytest.warns(UserWarning, match="its entry 'ema'"):
        assert same(loaded(tmp_path / "a", entry="ema"), other)


def test_what_does_not_fit_is_told_by_the_model(tmp_path: Path):
    gc.save({**make().state_dict(), "x": gc.ones(1)}, tmp_path / "a")
    with pytest.raises(StateDictError, match="unexpected keys: 'x'"):
        gc.load_weights(make(), tmp_path / "a")
    assert gc.load_weights(make(), tmp_path / "a", strict=False).unexpected_keys == ["x"]


def test_what_is_no_module_is_refused(tmp_path: Path):
    gc.save({"a": gc.ones(1)}, tmp_path / "a")
    with pytest.raises(ArgumentError, match="expected a module, got dict"):
        gc.load_weights({}, tmp_path / "a")  # type: ignore[arg-type]


def test_half_precision_is_exact(tmp_path: Path):
    model = make()
    arrays = {n: t.numpy().astype(np.float16 if t.dtype.name == "f32" else None) for n, t in model.state_dict().items()}
    gc.save(arrays, tmp_path / "a")
    found = loaded(tmp_path / "a")
    for name, tensor in found.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), arrays[name])


@pytest.mark.parametrize("form", ["archive", "legacy", "safetensors", "index"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_files_of_pytorch(torch, tmp_path: Path, form: str, dtype: str):
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to(getattr(torch, dtype))
    state, path = theirs.state_dict(), tmp_path / "file"
    if form == "safetensors":
        pytest.importorskip("safetensors.torch").save_file(state, str(path))
    elif form == "index":
        shards = {f"{i}.bin": {n: state[n]} for i, n in enumerate(state)}
        for name, shard in shards.items():
            torch.save(shard, tmp_path / name)
        path.write_text(json.dumps({"weight_map": {name: s for s, shard in shards.items() for name in shard}}))
    else:
        torch.save({"model": state}, path, _use_new_zipfile_serialization=form == "archive")
    found = loaded(path).state_dict()
    for name, tensor in state.items():
        assert (
            found[name].numpy().tobytes()
            == (tensor.float() if tensor.is_floating_point() else tensor).numpy().tobytes()
        )
