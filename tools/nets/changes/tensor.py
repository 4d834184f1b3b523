"""Changes of tensors: every in-place method on parameters, buffers and outside tensors, and writes through NumPy."""

from __future__ import annotations

import re
from typing import Any

import graphc as gc
from tools.nets.changes.table import MODEL_MODES, changes

_SAME = gc.tensor([[0.5, 0.25, 0.75, 0.5]] * 4)
_ROWS = gc.tensor([0, 2])
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "addbmm_": (gc.full((2, 4, 4), 0.25), gc.full((2, 4, 4), 0.5)),
    "addcdiv_": (_SAME, _SAME),
    "addcmul_": (_SAME, _SAME),
    "addmm_": (_SAME, _SAME),
    "addmv_": (_SAME, gc.full((4,), 0.5)),
    "addr_": (gc.full((4,), 0.5), gc.full((4,), 0.25)),
    "as_strided_": ((4, 4), (1, 4)),
    "baddbmm_": (gc.full((2, 4, 4), 0.25), gc.full((2, 4, 4), 0.5)),
    "bernoulli_": (0.5,),
    "clamp_": (0.0, 0.25),
    "clamp_max_": (0.1,),
    "clamp_min_": (0.1,),
    "clip_": (-0.1, 0.1),
    "cumprod_": (0,),
    "cumsum_": (0,),
    "fill_": (0.3,),
    "fill_diagonal_": (0.3,),
    "geometric_": (0.5,),
    "index_add_": (0, _ROWS, _SAME[:2]),
    "index_copy_": (0, _ROWS, _SAME[:2]),
    "index_fill_": (0, _ROWS, 0.4),
    "index_put_": ((_ROWS,), _SAME[:2]),
    "lerp_": (_SAME, 0.5),
    "masked_fill_": (_SAME > 0.4, 0.2),
    "masked_scatter_": (_SAME > 0.4, _SAME),
    "mvlgamma_": (2,),
    "polygamma_": (1,),
    "pow_": (2,),
    "renorm_": (2, 0, 0.5),
    "requires_grad_": (False,),
    "scatter_": (0, gc.zeros(1, 4, dtype=gc.int64), _SAME),
    "scatter_add_": (0, gc.zeros(1, 4, dtype=gc.int64), _SAME),
    "scatter_reduce_": (0, gc.zeros(1, 4, dtype=gc.int64), _SAME, "sum"),
    "squeeze_": (),
    "swapaxes_": (0, 1),
    "swapdims_": (0, 1),
    "transpose_": (0, 1),
    "unsqueeze_": (0,),
    "xlogy_": (_SAME,),
}
"""Arguments of in-place methods, except for methods of one tensor of the same shape or of none."""
OF_ROWS = {
    "addmv_": (_SAME, gc.full((4,), 0.5)),
    "fill_": (0.3,),
    "index_add_": (0, _ROWS, gc.full((2,), 0.25)),
    "index_copy_": (0, _ROWS, gc.full((2,), 0.25)),
    "index_put_": ((_ROWS,), gc.full((2,), 0.25)),
    "masked_fill_": (_SAME[0] > 0.4, 0.2),
    "masked_scatter_": (_SAME[0] > 0.4, _SAME[0]),
    "scatter_": (0, _ROWS, gc.full((2,), 0.25)),
    "scatter_add_": (0, _ROWS, gc.full((2,), 0.25)),
    "scatter_reduce_": (0, _ROWS, gc.full((2,), 0.25), "sum"),
    "lerp_": (_SAME[0], 0.5),
    "addcdiv_": (_SAME[0], _SAME[0]),
    "addcmul_": (_SAME[0], _SAME[0]),
    "as_strided_": ((4,), (1,)),
    "bitwise_left_shift_": (1,),
    "bitwise_right_shift_": (1,),
    "bitwise_or_": (5,),
    "bitwise_xor_": (5,),
    "bitwise_and_": (2,),
    "xlogy_": (_SAME[0],),
}
"""The same for tensors of four elements."""
PLACES = {
    "weight": "s.layer.weight",
    "bias": "s.layer.bias",
    "buffer": "s.body.shift",
    "global": "s.world.TABLE",
    "attribute": "s.body.memory",
    "running_mean": "s.body.norm.running_mean",
    "item": "s.body.rows[0]",
    "integers": "s.world.LOOKUP",
}
"""Tensors of a scene that a case writes to, by name."""


def in_place_methods() -> list[str]:
    """Return names of all methods of tensors that write to them."""
    return [n for n in dir(gc.Tensor) if n.endswith("_") and not n.startswith("_")]


def call(tensor: Any, name: str, matrix: bool) -> None:
    """Call an in-place method with arguments that fit."""
    arguments = ARGUMENTS if matrix else {**ARGUMENTS, **OF_ROWS}
    method = getattr(tensor, name)
    if name in arguments:
        method(*arguments[name])
        return
    try:
        method()
    except TypeError:
        same = _SAME if matrix else _SAME[0]
        method(same.long() if tensor.dtype is gc.int64 else same)


def _kinds(target: str) -> tuple[str, ...]:
    return ("lean", "rich") if target in ("weight", "bias") else ("rich",)


def _writing(name: str, target: str) -> None:
    place = PLACES[target]
    prepared = "pass" if target == "integers" else f"{place}.mul_(0.5).add_(gc.tensor([0.25, -0.3, 0.2, -0.1]))"
    entry = f"{target}.{name}:\n    with gc.no_grad():\n        {prepared}\n    yield\n"
    entry += f"    with gc.no_grad():\n        call({place}, {name!r}, {target == 'weight'})\n"
    modes = ("compile", "inference", "freeze", "step", *(("child", "export") if target == "weight" else ()))
    changes(entry, {"call": call}, _kinds(target), modes)


_OTHERS = ("bias", "buffer", "global", "attribute", "running_mean", "item")
_OF_MATRICES = {
    "addbmm_", "addmm_", "addr_", "fill_diagonal_", "renorm_", "swapaxes_", "swapdims_", "t_", "transpose_", "tril_",
    "triu_",
}  # fmt: skip
_UNFIT = {"baddbmm_"}
"""Methods of tensors of three dimensions; no parameter here has three."""
for _number, _name in enumerate(sorted(set(in_place_methods()) - _UNFIT)):
    if _name.startswith("bitwise_"):
        _writing(_name, "integers")
        continue
    _writing(_name, "weight")
    if _name not in _OF_MATRICES:
        _writing(_name, _OTHERS[_number % len(_OTHERS)])

UNSEEN = """
T_written_by_numpy: T.numpy(force=True)[...] = 3.0
T_written_by_numpy_given_out_before: array = T.numpy(force=True) => array[...] = 3.0
T_written_by_numpy_twice:
    array = T.numpy(force=True)
    array[...] = 0.75
    yield
    array[...] = 3.0
T_written_by_asarray: np.asarray(T.detach())[...] = 3.0
T_written_by_dlpack:
    array = np.from_dlpack(T.detach())
    yield
    if array.flags.writeable:
        array[...] = 3.0
    else:
        T.detach().fill_(3.0)
T_written_by_the_array_behind_data:
    array = np.full(T.shape, 0.75, np.float32)
    T.data = gc.from_numpy(array)
    yield
    array[...] = 3.0
"""
"""Writes to parameters and buffers that a frozen function does not see, as its documentation says."""
SEEN = """
T_written_by_data: T.data = T.data * 2
T_written_by_data_in_place: T.data.mul_(2)
T_written_by_data_of_an_array: T.data = gc.from_numpy(np.full(T.shape, 3.0, np.float32))
T_written_by_detached: T.detach().mul_(2)
T_written_by_a_view:
    with gc.no_grad():
        T.view(-1)[::2] += 0.5
T_written_by_a_view_of_before: view = T.detach()[1:] => view.fill_(3.0)
T_written_by_setitem:
    with gc.no_grad():
        T[1] = 3.0
T_written_by_augmented_setitem:
    with gc.no_grad():
        T[1:3] *= 2
T_written_by_inference_mode:
    with gc.inference_mode():
        T.mul_(2)
T_written_by_out:
    with gc.no_grad():
        T.copy_(gc.full(T.shape, 3.0))
"""
_MEMBERS = {"weight", "bias", "buffer", "running_mean"}
_NOT_FROZEN = [mode for mode in MODEL_MODES if mode != "freeze"]
for _target, _place in PLACES.items():
    if _target != "integers":
        for _text, _modes in ((UNSEEN, _NOT_FROZEN if _target in _MEMBERS else MODEL_MODES), (SEEN, MODEL_MODES)):
            _named = _text.replace("T_written", f"{_target}_written")
            changes(re.sub(r"\bT\b", _place, _named), kinds=_kinds(_target), modes=sorted(_modes))

changes(
    """
weight_of_an_array_that_is_written:
    array = np.full((4, 4), 0.5, np.float32)
    s.layer.weight = nn.Parameter(gc.from_numpy(array))
    yield
    array[...] = 3.0
""",
    modes=_NOT_FROZEN,
)
changes("""
gradient_of_a_weight_written:
    if s.layer.weight.grad is not None:
        s.layer.weight.grad.fill_(3.0)
gradient_of_a_weight_assigned: s.layer.weight.grad = gc.ones(4, 4)
attribute_of_a_parameter:
    layer = s.layer
    layer.weight.importance = 2.0
    layer.forward = lambda x: x @ layer.weight * layer.weight.importance
    yield
    layer.weight.importance = 3.0
weight_written_with_gradients:
    s.layer.weight.detach().requires_grad_().mul(2).detach_()
    with gc.enable_grad():
        factor = gc.tensor(2.0)
        s.layer.weight.data = (s.layer.weight * factor).detach()
""")
