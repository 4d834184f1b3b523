"""Events between two steps of a training, as a user causes them."""

from __future__ import annotations

import copy
from typing import Any

import graphc as gc
from graphc import nn
from tools.nets.entries import entries


def param_of(scene: Any, choice: Any) -> Any:
    """Return any parameter of the model."""
    return choice.choice([p for p in scene.model.parameters() if p.dtype is gc.float64])


def doubled(module: Any, args: Any, output: Any) -> Any:
    """Change the output of a layer."""
    return output * 1.1 if isinstance(output, gc.Tensor) else None


def rate_of(group: Any) -> float:
    """Return the learning rate of a group as a number."""
    return float(group["lr"].item() if isinstance(group["lr"], gc.Tensor) else group["lr"])


_TEXT = """
rate:
    group = choice.choice(scene.optimizers[0].param_groups)
    group["lr"] = group["lr"] * choice.choice([0.5, 0.0, 2.0])
decay:
    group = choice.choice(scene.optimizers[0].param_groups)
    group["weight_decay"] = choice.choice([0.0, 0.1, 0.02])
setting:
    for group in scene.optimizers[0].param_groups:
        if "momentum" in group:
            group["momentum"] = choice.choice([0.5, 0.8, 0.9])
        elif "betas" in group:
            group["betas"] = (choice.choice([0.5, 0.8]), 0.99)
        if "maximize" in group:
            group["maximize"] = choice.random() < 0.3
freeze:
    param = param_of(scene, choice)
    param.requires_grad_(not param.requires_grad)
replace:
    old = scene.model.scale
    scene.model.scale = nn.Parameter(old.detach().clone() * 0.9)
    if choice.random() < 0.5:
        for optimizer in scene.optimizers:
            for group in optimizer.param_groups:
                group["params"] = [scene.model.scale if p is old else p for p in group["params"]]
load:
    saved = {k: v.clone() * 0.9 if v.dtype is gc.float64 else v for k, v in scene.model.state_dict().items()}
    scene.model.load_state_dict(saved)
load_assigned:
    saved = {k: v.clone() for k, v in scene.model.state_dict().items()}
    scene.model.load_state_dict(saved, assign=True)
load_optimizer:
    for optimizer in scene.optimizers:
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
clear_optimizer: scene.optimizers[0].state.clear()
scale_state:
    with gc.no_grad():
        for state in scene.optimizers[0].state.values():
            for name, tensor in state.items():
                if tensor.dim() and choice.random() < 0.5:
                    state[name] = tensor * 0.5
add_group:
    if not scene.has_extra and scene.schedule is None:
        scene.has_extra = True
        scene.optimizers[0].add_param_group({"params": [scene.extra], "lr": 0.02})
forward_hook:
    module = choice.choice(list(scene.model.layers) or [scene.model.shared])
    scene.handles.append(module.register_forward_hook(doubled))
backward_hook: scene.handles.append(scene.model.shared.register_full_backward_hook(lambda m, gi, go: None))
param_hook:
    param = param_of(scene, choice)
    if param.requires_grad:
        scene.handles.append(param.register_hook(lambda g: g * 0.5))
step_hook:
    def hook(optimizer, args, kwargs):
        scene.told.append(float(optimizer.step_count))
    scene.handles.append(scene.optimizers[0].register_step_post_hook(hook))
remove_hooks:
    for handle in scene.handles:
        handle.remove()
    scene.handles.clear()
size: scene.batch = choice.choice([2, 3, 5]) if scene.batch < 10 else 50
evaluate:
    scene.model.eval()
    with gc.no_grad():
        result = scene.call(gc.ones(2, 6, dtype=gc.float64))
    scene.told += [t.numpy().copy() for t in scene.tensors(result)]
    scene.model.train()
eval_mode: scene.model.train(not scene.model.training)
clear: scene.model.zero_grad(set_to_none=choice.random() < 0.5)
set_gradient:
    param = param_of(scene, choice)
    param.grad = gc.full(tuple(param.shape), 0.1, dtype=gc.float64)
share_gradient:
    if scene.model.scale.grad is not None:
        scene.model.shared.bias.grad = scene.model.scale.grad
data:
    param = param_of(scene, choice)
    kind = choice.randrange(4)
    if kind == 0:
        param.data = param.data * 0.9
    elif kind == 1:
        param.data.mul_(0.9)
    elif kind == 2:
        param.detach().numpy()[...] *= 0.9
    else:
        with gc.no_grad():
            param.mul_(0.9)
keep:
    for name, param in scene.model.named_parameters():
        if scene.clears == "never" and not {"drop", "set"} & scene.flags:
            # An addition to a gradient that the same call clears is invisible outside.
            scene.kept.append((f"grad {name}", param.grad))
        scene.kept += [(f"slot {name}", t) for t in scene.optimizers[0].state.get(param, {}).values()]
seed: gc.manual_seed(choice.randrange(100))
rebind:
    scene.model.drop.p = choice.choice([0.0, 0.2, 0.6])
    scene.weight = choice.choice([0.5, 1.0])
swap:
    old = scene.model.shared
    new = nn.Linear(6, 6).double()
    new.load_state_dict(old.state_dict())
    scene.model.shared = new
tie:
    if "average" in scene.flags:
        return  # the average has as many parameters as the model had
    for layer in scene.model.layers:
        if type(layer) is nn.Linear:
            layer.weight = (
                nn.Parameter(layer.weight.detach().clone()) if choice.random() < 0.3 else (scene.model.shared.weight)
            )
            break
number: scene.model.count = 10
rate_tensor:
    for group in scene.optimizers[0].param_groups:
        group["lr"] = gc.tensor(rate_of(group), dtype=gc.float64)
"""
_NAMES = {"copy": copy, "gc": gc, "nn": nn, "param_of": param_of, "doubled": doubled, "rate_of": rate_of}
EVENTS = {entry.name: entry.function for entry in entries(_TEXT, "scene, choice", _NAMES)}
"""Functions of a scene (tools.nets.training) and its choice of this event, by name."""
