"""Events between two steps of a training, as a user causes them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn

Event = Callable[[Any, Any], None]
"""Function of a scene (tools.nets.training) and its choice of this event."""


def _param(scene: Any, choice: Any) -> Any:
    return choice.choice([p for p in scene.model.parameters() if p.dtype is gc.float64])


def _rate(scene: Any, choice: Any) -> None:
    group = choice.choice(scene.optimizers[0].param_groups)
    group["lr"] = group["lr"] * choice.choice([0.5, 0.0, 2.0])


def _decay(scene: Any, choice: Any) -> None:
    group = choice.choice(scene.optimizers[0].param_groups)
    group["weight_decay"] = choice.choice([0.0, 0.1, 0.02])


def _setting(scene: Any, choice: Any) -> None:
    for group in scene.optimizers[0].param_groups:
        if "momentum" in group:
            group["momentum"] = choice.choice([0.5, 0.8, 0.9])
        elif "betas" in group:
            group["betas"] = (choice.choice([0.5, 0.8]), 0.99)
        if "maximize" in group:
            group["maximize"] = choice.random() < 0.3


def _freeze(scene: Any, choice: Any) -> None:
    param = _param(scene, choice)
    param.requires_grad_(not param.requires_grad)


def _replace(scene: Any, choice: Any) -> None:
    old = scene.model.scale
    scene.model.scale = nn.Parameter(old.detach().clone() * 0.9)
    if choice.random() < 0.5:
        for optimizer in scene.optimizers:
            for group in optimizer.param_groups:
                group["params"] = [scene.model.scale if p is old else p for p in group["params"]]


def _load(scene: Any, choice: Any) -> None:
    saved = {k: v.clone() * 0.9 if v.dtype is gc.float64 else v for k, v in scene.model.state_dict().items()}
    scene.model.load_state_dict(saved)


def _load_assigned(scene: Any, choice: Any) -> None:
    saved = {k: v.clone() for k, v in scene.model.state_dict().items()}
    scene.model.load_state_dict(saved, assign=True)


def _load_optimizer(scene: Any, choice: Any) -> None:
    for optimizer in scene.optimizers:
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def _clear_optimizer(scene: Any, choice: Any) -> None:
    scene.optimizers[0].state.clear()


def _scale_state(scene: Any, choice: Any) -> None:
    with gc.no_grad():
        for state in scene.optimizers[0].state.values():
            for name, tensor in state.items():
                if tensor.dim() and choice.random() < 0.5:
                    state[name] = tensor * 0.5


def _add_group(scene: Any, choice: Any) -> None:
    if not scene.has_extra and scene.schedule is None:
        scene.has_extra = True
        scene.optimizers[0].add_param_group({"params": [scene.extra], "lr": 0.02})


def _forward_hook(scene: Any, choice: Any) -> None:
    module = choice.choice(list(scene.model.layers) or [scene.model.shared])
    scene.handles.append(module.register_forward_hook(_doubled))


def _doubled(module: Any, args: Any, output: Any) -> Any:
    return output * 1.1 if isinstance(output, gc.Tensor) else None


def _backward_hook(scene: Any, choice: Any) -> None:
    scene.handles.append(scene.model.shared.register_full_backward_hook(lambda m, gi, go: None))


def _param_hook(scene: Any, choice: Any) -> None:
    param = _param(scene, choice)
    if param.requires_grad:
        scene.handles.append(param.register_hook(lambda g: g * 0.5))


def _step_hook(scene: Any, choice: Any) -> None:
    def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
        scene.told.append(float(optimizer.step_count))

    scene.handles.append(scene.optimizers[0].register_step_post_hook(hook))


def _remove_hooks(scene: Any, choice: Any) -> None:
    for handle in scene.handles:
        handle.remove()
    scene.handles.clear()


def _size(scene: Any, choice: Any) -> None:
    scene.batch = choice.choice([2, 3, 5]) if scene.batch < 10 else 50


def _evaluate(scene: Any, choice: Any) -> None:
    scene.model.eval()
    with gc.no_grad():
        result = scene.call(gc.ones(2, 6, dtype=gc.float64))
    scene.told += [t.numpy().copy() for t in scene.tensors(result)]
    scene.model.train()


def _eval_mode(scene: Any, choice: Any) -> None:
    scene.model.train(not scene.model.training)


def _clear(scene: Any, choice: Any) -> None:
    scene.model.zero_grad(set_to_none=choice.random() < 0.5)


def _set_gradient(scene: Any, choice: Any) -> None:
    param = _param(scene, choice)
    param.grad = gc.full(tuple(param.shape), 0.1, dtype=gc.float64)


def _share_gradient(scene: Any, choice: Any) -> None:
    if scene.model.scale.grad is not None:
        scene.model.shared.bias.grad = scene.model.scale.grad


def _data(scene: Any, choice: Any) -> None:
    param = _param(scene, choice)
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


def _keep(scene: Any, choice: Any) -> None:
    for name, param in scene.model.named_parameters():
        if scene.clears == "never" and not {"drop", "set"} & scene.flags:
            # An addition to a gradient that the same call clears is invisible outside.
            scene.kept.append((f"grad {name}", param.grad))
        scene.kept += [(f"slot {name}", t) for t in scene.optimizers[0].state.get(param, {}).values()]


def _seed(scene: Any, choice: Any) -> None:
    gc.manual_seed(choice.randrange(100))


def _rebind(scene: Any, choice: Any) -> None:
    scene.model.drop.p = choice.choice([0.0, 0.2, 0.6])
    scene.weight = choice.choice([0.5, 1.0])


def _swap(scene: Any, choice: Any) -> None:
    old = scene.model.shared
    new = nn.Linear(6, 6).double()
    new.load_state_dict(old.state_dict())
    scene.model.shared = new


def _tie(scene: Any, choice: Any) -> None:
    if "average" in scene.flags:
        return  # the average has as many parameters as the model had
    for layer in scene.model.layers:
        if type(layer) is nn.Linear:
            layer.weight = (
                nn.Parameter(layer.weight.detach().clone()) if choice.random() < 0.3 else (scene.model.shared.weight)
            )
            break


def _number(scene: Any, choice: Any) -> None:
    scene.model.count = 10


def _rate_tensor(scene: Any, choice: Any) -> None:
    for group in scene.optimizers[0].param_groups:
        group["lr"] = gc.tensor(float(np.asarray(_plain(group["lr"]))), dtype=gc.float64)


def _plain(rate: Any) -> Any:
    return rate.item() if isinstance(rate, gc.Tensor) else rate


EVENTS: dict[str, Event] = {
    "rate": _rate,
    "decay": _decay,
    "setting": _setting,
    "freeze": _freeze,
    "replace": _replace,
    "load": _load,
    "load_assigned": _load_assigned,
    "load_optimizer": _load_optimizer,
    "clear_optimizer": _clear_optimizer,
    "scale_state": _scale_state,
    "add_group": _add_group,
    "forward_hook": _forward_hook,
    "backward_hook": _backward_hook,
    "param_hook": _param_hook,
    "step_hook": _step_hook,
    "remove_hooks": _remove_hooks,
    "size": _size,
    "evaluate": _evaluate,
    "eval_mode": _eval_mode,
    "clear": _clear,
    "set_gradient": _set_gradient,
    "share_gradient": _share_gradient,
    "data": _data,
    "keep": _keep,
    "seed": _seed,
    "rebind": _rebind,
    "swap": _swap,
    "tie": _tie,
    "number": _number,
    "rate_tensor": _rate_tensor,
}
