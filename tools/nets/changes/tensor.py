"""Changes of tensors: every in-place method on parameters, buffers and outside tensors, and writes through NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from tools.nets.changes.scene import Scene
from tools.nets.changes.table import MODEL_MODES, add, change

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
Find = Callable[[Scene], Any]
"""Returns the tensor of a scene to write to."""
PLACES: dict[str, Find] = {
    "weight": lambda s: s.layer.weight,
    "bias": lambda s: s.layer.bias,
    "buffer": lambda s: s.body.shift,
    "global": lambda s: s.world.TABLE,
    "attribute": lambda s: s.body.memory,
    "running_mean": lambda s: s.body.norm.running_mean,
    "item": lambda s: s.body.rows[0],
    "integers": lambda s: s.world.LOOKUP,
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


def _writing(name: str, target: str) -> None:
    def written(s: Scene) -> Iterator[None]:
        tensor = PLACES[target](s)
        with gc.no_grad():
            if target != "integers":
                tensor.mul_(0.5).add_(gc.tensor([0.25, -0.3, 0.2, -0.1]))
        yield
        with gc.no_grad():
            call(PLACES[target](s), name, target == "weight")

    kinds = ("lean", "rich") if target in ("weight", "bias") else ("rich",)
    add(f"{target}.{name}", written, kinds, modes=_WRITE_MODES if target == "weight" else _OTHER_WRITE_MODES)


_WRITE_MODES = ("compile", "inference", "freeze", "child", "step", "export")
_OTHER_WRITE_MODES = ("compile", "inference", "freeze", "step")
_OTHERS = ("bias", "buffer", "global", "attribute", "running_mean", "item")
_OF_MATRICES = {
    "addbmm_", "addmm_", "addr_", "fill_diagonal_", "renorm_", "swapaxes_", "swapdims_", "t_", "transpose_", "tril_",
    "triu_",
}  # fmt: skip
_OF_INTEGERS = {n for n in in_place_methods() if n.startswith("bitwise_")}
_UNFIT = {"baddbmm_"}
"""Methods of tensors of three dimensions; no parameter here has three."""
for _number, _name in enumerate(sorted(set(in_place_methods()) - _UNFIT)):
    if _name in _OF_INTEGERS:
        _writing(_name, "integers")
        continue
    _writing(_name, "weight")
    if _name not in _OF_MATRICES:
        _writing(_name, _OTHERS[_number % len(_OTHERS)])


def _by_numpy(s: Scene, of: Find) -> None:
    of(s).numpy(force=True)[...] = 3.0


def _by_numpy_given_out_before(s: Scene, of: Find) -> Iterator[None]:
    array = of(s).numpy(force=True)
    yield
    array[...] = 3.0


def _by_numpy_twice(s: Scene, of: Find) -> Iterator[None]:
    array = of(s).numpy(force=True)
    array[...] = 0.75
    yield
    array[...] = 3.0


def _by_asarray(s: Scene, of: Find) -> None:
    np.asarray(of(s).detach())[...] = 3.0


def _by_dlpack(s: Scene, of: Find) -> Iterator[None]:
    array = np.from_dlpack(of(s).detach())
    yield
    if array.flags.writeable:
        array[...] = 3.0
    else:
        of(s).detach().fill_(3.0)


def _by_data(s: Scene, of: Find) -> None:
    of(s).data = of(s).data * 2


def _by_data_in_place(s: Scene, of: Find) -> None:
    of(s).data.mul_(2)


def _by_data_of_an_array(s: Scene, of: Find) -> None:
    of(s).data = gc.from_numpy(np.full(of(s).shape, 3.0, np.float32))


def _by_the_array_behind_data(s: Scene, of: Find) -> Iterator[None]:
    array = np.full(of(s).shape, 0.75, np.float32)
    of(s).data = gc.from_numpy(array)
    yield
    array[...] = 3.0


def _by_detached(s: Scene, of: Find) -> None:
    of(s).detach().mul_(2)


def _by_a_view(s: Scene, of: Find) -> None:
    with gc.no_grad():
        of(s).view(-1)[::2] += 0.5


def _by_a_view_of_before(s: Scene, of: Find) -> Iterator[None]:
    view = of(s).detach()[1:]
    yield
    view.fill_(3.0)


def _by_setitem(s: Scene, of: Find) -> None:
    with gc.no_grad():
        of(s)[1] = 3.0


def _by_augmented_setitem(s: Scene, of: Find) -> None:
    with gc.no_grad():
        of(s)[1:3] *= 2


def _by_inference_mode(s: Scene, of: Find) -> None:
    with gc.inference_mode():
        of(s).mul_(2)


def _by_out(s: Scene, of: Find) -> None:
    with gc.no_grad():
        of(s).copy_(gc.full(of(s).shape, 3.0))


UNSEEN = {
    "_by_numpy", "_by_numpy_given_out_before", "_by_numpy_twice", "_by_asarray", "_by_dlpack",
    "_by_the_array_behind_data",
}  # fmt: skip
"""Writes to parameters and buffers that a frozen function does not see, as its documentation says."""
_MEMBERS = {"weight", "bias", "buffer", "running_mean"}


def _of_place(target: str, kinds: tuple[str, ...]) -> None:
    """Add the modes to write to a tensor without a method of its own."""
    for name, function in list(globals().items()):
        if name.startswith("_by_"):
            modes = set(MODEL_MODES) - ({"freeze"} if name in UNSEEN and target in _MEMBERS else set())
            add(f"{target}_written{name}", _bound(function, PLACES[target]), kinds, sorted(modes))


def _bound(function: Callable[[Scene, Find], Any], of: Find) -> Callable[[Scene], Any]:
    if inspect.isgeneratorfunction(function):

        def prepared(s: Scene) -> Iterator[None]:
            yield from function(s, of)

        return prepared
    return lambda s: function(s, of)


for _target in [p for p in PLACES if p != "integers"]:
    _of_place(_target, ("lean", "rich") if _target in ("weight", "bias") else ("rich",))


@change(modes=[mode for mode in MODEL_MODES if mode != "freeze"])
def weight_of_an_array_that_is_written(s: Scene) -> Iterator[None]:
    array = np.full((4, 4), 0.5, np.float32)
    s.layer.weight = nn.Parameter(gc.from_numpy(array))
    yield
    array[...] = 3.0


@change()
def gradient_of_a_weight_written(s: Scene) -> None:
    if s.layer.weight.grad is not None:
        s.layer.weight.grad.fill_(3.0)


@change()
def gradient_of_a_weight_assigned(s: Scene) -> None:
    s.layer.weight.grad = gc.ones(4, 4)


@change()
def attribute_of_a_parameter(s: Scene) -> Iterator[None]:
    layer = s.layer
    layer.weight.importance = 2.0
    layer.forward = lambda x: x @ layer.weight * layer.weight.importance
    yield
    layer.weight.importance = 3.0


@change()
def weight_written_with_gradients(s: Scene) -> None:
    s.layer.weight.detach().requires_grad_().mul(2).detach_()
    with gc.enable_grad():
        factor = gc.tensor(2.0)
        s.layer.weight.data = (s.layer.weight * factor).detach()
