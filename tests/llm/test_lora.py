"""Adapters train beside frozen layers, merge into them, and return from files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.errors import ArgumentError, ArtifactError, UnsupportedError
from graphc.llm.block_layers import BlockLinear, BlockWeight
from graphc.llm.blocks import FORMATS
from graphc.llm.gguf_file import GgufTensor
from graphc.nn import functional as F
from graphc.nn.modules.linear import Linear
from tests.llm.test_block_layers import QUANTIZED, weight_of
from tools.damage.language_models import CONFIG
from tools.gguf_files import random_blocks

TOKENS = gc.tensor(np.random.default_rng(0).integers(0, 64, (2, 17)))


def decoder(**changes: Any) -> llm.Decoder:
    gc.manual_seed(0)
    return llm.Decoder(llm.decoder_config({**CONFIG, **changes}))


def train(model: llm.Decoder, steps: int) -> list[float]:
    def loss(logits: gc.Tensor, targets: gc.Tensor) -> gc.Tensor:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    optimizer = gc.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    step = gc.compile_step(model.train(), loss, optimizer)
    return [step(TOKENS[:, :-1], TOKENS[:, 1:]).item() for _ in range(steps)]


def outputs(model: llm.Decoder) -> np.ndarray:
    with gc.no_grad():
        return model.eval()(TOKENS).numpy()


def one_layer() -> llm.Decoder:
    return decoder(num_hidden_layers=1, layer_types=None)


def quantized() -> llm.Decoder:
    model = one_layer()
    for path, layer in list(model.named_modules()):
        if isinstance(layer, Linear) and layer.in_features % 32 == 0:
            blocks = random_blocks("Q4_1", layer.out_features, layer.in_features)
            model.set_submodule(path, BlockLinear(BlockWeight.of(GgufTensor(FORMATS[3], blocks))))
    return model


@pytest.mark.parametrize("make", [one_layer, quantized], ids=["floats", "codes"])
def test_only_adapters_train_and_merged_layers_compute_the_same(make: Callable[[], llm.Decoder]):
    model = make()
    before = {name: t.detach().numpy().copy() for name, t in [*model.named_parameters(), *model.named_buffers()]}
    original = outputs(model)
    llm.add_lora(model, rank=4, alpha=8, targets=("q_proj", "v_proj", "up_proj"))
    np.testing.assert_array_equal(outputs(model), original, "B is zero")
    losses = train(model, 12)
    assert losses[-1] < 0.9 * losses[0]
    after = {n.replace(".base_layer", ""): t for n, t in [*model.named_parameters(), *model.named_buffers()]}
    assert sum("lora_" in name for name in after) == 2 * 3 * model.config.layers
    for name, values in before.items():
        np.testing.assert_array_equal(after[name].detach().numpy(), values, name)
    adapted = outputs(model)
    assert np.abs(adapted - original).max() > 0.1
    assert llm.merge_lora(model) is model and not any(isinstance(m, llm.LoraLinear) for m in model.modules())
    assert type(model.layers[0].mlp.up_proj) is Linear
    limit = 1e-5 * max(1.0, np.abs(adapted).max())
    np.testing.assert_allclose(outputs(model), adapted, atol=limit)


def test_the_formula_of_an_adapted_layer():
    random = np.random.default_rng(0)
    a, b, w, x = (random.standard_normal(s).astype(np.float32) for s in ((3, 8), (5, 3), (5, 8), (2, 8)))
    base = Linear(8, 5)
    layer, bias = llm.LoraLinear(base, 3, 6.0), base.state_dict()["bias"].numpy()
    with gc.no_grad():
        for parameter, value in ((layer.lora_A.weight, a), (layer.lora_B.weight, b), (base.weight, w)):
            parameter.copy_(gc.tensor(value))
        expected = x @ w.T + bias + 6 / 3 * (x @ a.T @ b.T)
        np.testing.assert_allclose(layer(gc.tensor(x)).numpy(), expected, atol=1e-5)
        np.testing.assert_allclose(layer.merged()(gc.tensor(x)).numpy(), expected, atol=1e-5)


def test_files_return_the_adapters_under_the_names_of_peft(tmp_path: Path):
    pytest.importorskip("safetensors", reason="writes safetensors files")
    model = llm.add_lora(decoder(), 2, 6, ["q_proj", "layers.1.mlp.up_proj"])
    train(model, 2)
    llm.save_lora(model, tmp_path / "adapter", base_model="some/model")
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 2, 6)
    assert config["target_modules"] == ["layers.1.mlp.up_proj", "q_proj"]
    stored = gc.load_state(tmp_path / "adapter" / "adapter_model.safetensors")
    assert stored["base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"].shape == (2, 32)
    assert stored["base_model.model.model.layers.1.mlp.up_proj.lora_B.weight"].shape == (48, 2)
    assert stored.keys() == llm.lora_state(model).keys() and len(stored) == 6
    other = llm.load_lora(decoder(), tmp_path / "adapter")
    np.testing.assert_allclose(outputs(other), outputs(model), atol=1e-5)
    assert {n for n, p in other.named_parameters() if p.requires_grad} == {
        n for n, p in model.named_parameters() if p.requires_grad
    }


def test_files_that_do_not_fit(tmp_path: Path):
    pytest.importorskip("safetensors", reason="writes safetensors files")
    llm.save_lora(llm.add_lora(decoder(), 2), tmp_path)
    with pytest.raises(ArtifactError, match=r"lora_A.weight' has shape \[2, 32\], not \[2, 64\]"):
        llm.load_lora(decoder(hidden_size=64), tmp_path)
    with pytest.raises(ArtifactError, match=r"no such layers.*layers\.1\.self_attn"):
        llm.load_lora(decoder(num_hidden_layers=1, layer_types=None), tmp_path)
    path = tmp_path / "adapter_config.json"
    config = json.loads(path.read_text())
    for change, error, message in (
        ({"r": 3}, ArtifactError, r"has shape \[2, 32\], not \[3, 32\]"),
        ({"r": "two"}, ArtifactError, "r is 'two', not a number"),
        ({"use_dora": True}, UnsupportedError, "adapters with use_dora"),
        ({"peft_type": "IA3"}, UnsupportedError, "'IA3'"),
    ):
        path.write_text(json.dumps({**config, **change}))
        with pytest.raises(error, match=message):
            llm.load_lora(decoder(), tmp_path)


def test_wrong_arguments(tmp_path: Path):
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"rank": 0}, "rank is 0"),
        ({"rank": 1.5}, "rank is 1.5"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"targets": ["q_proj", "c_attn"]}, "no linear layer has the name 'c_attn'"),
        ({"targets": ["proj"]}, "no linear layer has the name 'proj'"),
        ({"targets": []}, "targets are empty"),
    )
    for arguments, message in cases:
        model = decoder()
        with pytest.raises(ArgumentError, match=message):
            llm.add_lora(model, **arguments)
        assert all(p.requires_grad for p in model.parameters()), "an error changes nothing"
    with pytest.raises(ArgumentError, match="merge them first"):
        llm.add_lora(llm.add_lora(decoder()))
    for call in (llm.merge_lora, llm.lora_state, lambda m: llm.save_lora(m, tmp_path)):
        with pytest.raises(ArgumentError, match="no adapters"):
            call(decoder())


def test_a_merged_quantized_layer_keeps_its_bias():
    weight, elements = weight_of(QUANTIZED[0])
    layer = llm.LoraLinear(BlockLinear(weight, gc.nn.Parameter(gc.ones(40))), 2, 4.0).merged()
    np.testing.assert_allclose(layer(gc.zeros(1, 512)).detach().numpy(), np.ones((1, 40)))
    np.testing.assert_array_equal(layer.weight.numpy(), elements)
