"""Changes around a module: plain attributes, containers, globals, closures, defaults, arguments, modes, seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from tools.nets.changes.scene import SEED, Scene
from tools.nets.changes.table import add, change


def _all(table: dict[str, Callable[[Scene], Any]], *kinds: str) -> None:
    for name, function in table.items():
        add(name, function, kinds or ("lean", "rich"))


def _set(owner: Callable[[Scene], Any], name: str, value: Any) -> Callable[[Scene], None]:
    return lambda s: setattr(owner(s), name, value() if callable(value) else value)


def _body(s: Scene) -> Any:
    return s.body


def _world(s: Scene) -> Any:
    return s.world


def _row() -> Any:
    return gc.tensor([1.0, 2.0, 3.0, 4.0])


ATTRIBUTES: dict[str, Callable[[Scene], Any]] = {
    "attribute_number": _set(_body, "factor", 3.0),
    "attribute_number_to_integer": _set(_body, "factor", 3),
    "attribute_number_to_negative_zero": _set(_body, "factor", -0.0),
    "attribute_number_to_nan": _set(_body, "factor", float("nan")),
    "attribute_number_to_tensor": _set(_body, "factor", lambda: gc.tensor(2.0)),
    "attribute_number_to_numpy": _set(_body, "factor", np.float32(2.5)),
    "attribute_text": _set(_body, "mode", "other"),
    "attribute_flag": _set(_body, "flag", False),
    "attribute_none": _set(_body, "absent", 1),
    "attribute_list": _set(_body, "sizes", lambda: [3.0, 4.0]),
    "attribute_list_item": lambda s: s.body.sizes.__setitem__(0, 5.0),
    "attribute_list_appended": lambda s: s.body.sizes.append(3.0),
    "attribute_list_popped": lambda s: s.body.sizes.pop(),
    "attribute_list_cleared": lambda s: s.body.sizes.clear(),
    "attribute_list_reversed": lambda s: s.body.sizes.reverse(),
    "attribute_dict_item": lambda s: s.body.nested.__setitem__("gain", 2.0),
    "attribute_dict_updated": lambda s: s.body.nested.update(gain=3.0),
    "attribute_dict_item_deleted": lambda s: s.body.nested.pop("gain"),
    "attribute_dict_deep_item": lambda s: s.body.nested["deep"][1].update(low=0.75),
    "attribute_dict_deep_list": lambda s: s.body.nested["deep"].__setitem__(1, {"low": 2.0}),
    "attribute_object": _set(_body, "settings", lambda: SimpleNamespace(shift=lambda: 2.0, row=_row())),
    "attribute_object_number": lambda s: setattr(s.body.settings, "amount", 2.0),
    "attribute_object_tensor": lambda s: setattr(s.body.settings, "row", _row()),
    "attribute_object_tensor_written": lambda s: s.body.settings.row.mul_(2),
    "attribute_object_method": lambda s: setattr(s.body.settings, "shift", lambda: 3.0),
    "attribute_object_method_of_class": lambda s: setattr(type(s.body.settings), "shift", lambda self: 3.0),
    "attribute_object_in_dict": lambda s: s.body.settings.__dict__.update(amount=2.5),
    "attribute_tensor": _set(_body, "memory", _row),
    "attribute_tensor_in_dict": lambda s: s.body.__dict__.update(memory=_row()),
    "attribute_list_of_tensors_item": lambda s: s.body.rows.__setitem__(0, _row()),
    "attribute_list_of_tensors_appended": lambda s: s.body.rows.append(_row()),
    "attribute_in_dict": lambda s: s.body.__dict__.__setitem__("factor", 4.0),
    "attribute_dict_replaced_as_a_whole": lambda s: s.body.__dict__.update(factor=4.0, mode="other"),
    "attribute_by_object_setattr": lambda s: object.__setattr__(s.body, "factor", 4.0),
    "attribute_deleted": lambda s: delattr(s.body, "factor"),
    "attribute_deleted_that_hides_one_of_the_class": lambda s: delattr(s.body, "mode"),
    "attribute_that_hides_one_of_the_class": _set(_body, "sign", 3.0),
    "attribute_function": _set(_body, "closed", lambda: lambda x: x * 2),
    "class_attribute": lambda s: setattr(type(s.body), "sign", 3.0),
    "class_attribute_deleted": lambda s: delattr(type(s.body), "sign"),
    "class_attribute_becomes_property": lambda s: setattr(type(s.body), "sign", property(lambda self: 3.0)),
    "class_of_object_attribute": lambda s: setattr(type(s.world.SETTINGS), "bias", 3.0),
    "dropout_p": lambda s: setattr(s.body.drop, "p", 0.75),
    "dropout_p_zero": lambda s: setattr(s.body.drop, "p", 0.0),
    "norm_eps": lambda s: setattr(s.body.norm, "eps", 0.5),
    "norm_momentum": lambda s: setattr(s.body.norm, "momentum", 0.5),
    "norm_momentum_none": lambda s: setattr(s.body.norm, "momentum", None),
    "norm_track_running_stats": lambda s: setattr(s.body.norm, "track_running_stats", False),
    "norm_running_stats_reset": lambda s: s.body.norm.reset_running_stats(),
    "norm_running_mean_none": lambda s: (
        setattr(s.body.norm, "running_mean", None), setattr(s.body.norm, "running_var", None)
    ),
    "norm_weight_none": lambda s: setattr(s.body.norm, "weight", None),
}  # fmt: skip
_all(ATTRIBUTES, "rich")

GLOBALS: dict[str, Callable[[Scene], Any]] = {
    "global_number": _set(_world, "GAIN", 3.0),
    "global_number_in_dict": lambda s: vars(s.world).update(GAIN=4.0),
    "global_number_to_tensor": _set(_world, "GAIN", lambda: gc.tensor(2.0)),
    "global_number_deleted": lambda s: delattr(s.world, "GAIN"),
    "global_text": _set(_world, "WORD", "other"),
    "global_tuple": _set(_world, "PAIR", (2.0, 1.0)),
    "global_dict_item": lambda s: s.world.OPTIONS.update(slope=2.0),
    "global_dict_new_item": lambda s: s.world.OPTIONS.update(extra=1),
    "global_dict": _set(_world, "OPTIONS", lambda: {"slope": 3.0}),
    "global_list_item": lambda s: s.world.STEPS.__setitem__(0, 3.0),
    "global_list_appended": lambda s: s.world.STEPS.append(1.0),
    "global_set": lambda s: s.world.CHOSEN.add(7),
    "global_tensor": _set(_world, "TABLE", _row),
    "global_list_of_tensors": lambda s: s.world.TABLES.__setitem__(0, _row()),
    "global_list_of_tensors_written": lambda s: s.world.TABLES[0].mul_(2),
    "global_object_number": lambda s: setattr(s.world.SETTINGS, "amount", 3.0),
    "global_object": lambda s: setattr(s.world, "SETTINGS", SimpleNamespace(amount=2.0, bias=1.0)),
    "global_function": _set(_world, "bend", lambda: lambda x: x * 2),
    "global_function_defaults": lambda s: setattr(s.world.bend, "__defaults__", (2.0,)),
    "global_function_keyword_defaults": lambda s: s.world.bend.__kwdefaults__.update(more=2.0),
    "global_function_keyword_defaults_replaced": lambda s: setattr(s.world.bend, "__kwdefaults__", {"more": 3.0}),
    "global_function_code": lambda s: setattr(s.world.bend, "__code__", s.world.other_bend.__code__),
    "global_module_function": lambda s: _replace_in(s, s.world.F, "softplus", lambda x: x * 3),
    "global_package_function": lambda s: _replace_in(s, gc, "tanh", gc.sigmoid),
    "global_hides_a_builtin": _set(_world, "sum", lambda: lambda values: 3.0),
    "closure_number": lambda s: s.body.change(number=2.0),
    "closure_tensor": lambda s: s.body.change(tensor=_row()),
    "closure_tensor_written": lambda s: s.body.closed.__closure__[1].cell_contents.mul_(2),
    "closure_cell_contents": lambda s: setattr(s.body.closed.__closure__[0], "cell_contents", 3.0),
}
_all(GLOBALS, "rich")


def _replace_in(s: Scene, module: Any, name: str, value: Any) -> None:
    before = getattr(module, name)
    s.stack.callback(setattr, module, name, before)
    setattr(module, name, value)


# ---- arguments other than tensors


class _Holder:
    def __init__(self, amount: Any):
        self.amount = amount


@dataclasses.dataclass
class _Record:
    amount: Any


def _arg(name: str, make: Callable[[], Any], mutate: Callable[[Any], Any] | None, other: Callable[[], Any]) -> None:
    """Add a change of an argument in place, and one that replaces it."""

    def change_argument(s: Scene) -> Iterator[None]:
        value = make()
        s.extra = (value,)
        yield
        if mutate is None:
            s.extra = (other(),)
        else:
            mutate(value)

    add(name, change_argument, ("lean",))


def _function(amount: float) -> Callable[[], float]:
    def function() -> float:
        return amount

    return function


_arg("argument_number", lambda: 2.0, None, lambda: 3.0)
_arg("argument_number_negative_zero", lambda: 0.0, None, lambda: -0.0)
_arg("argument_number_to_integer", lambda: 2.0, None, lambda: 2)
_arg("argument_number_to_flag", lambda: 1, None, lambda: True)
_arg("argument_number_nan", lambda: float("nan"), None, lambda: float("inf"))
_arg("argument_numpy_number", lambda: np.float32(2.0), None, lambda: np.float32(3.0))
_arg("argument_tensor", lambda: gc.tensor(2.0), None, lambda: gc.tensor(3.0))
_arg("argument_tensor_to_number", lambda: gc.tensor(2.0), None, lambda: 2.0)
_arg("argument_tensor_written", lambda: gc.tensor(2.0), lambda v: v.mul_(2), lambda: None)
_arg("argument_none", lambda: 2.0, None, lambda: None)
_arg("argument_list", lambda: [2.0], lambda v: v.__setitem__(0, 3.0), lambda: None)
_arg("argument_list_replaced", lambda: [2.0], None, lambda: [3.0])
_arg("argument_tuple_replaced", lambda: (2.0,), None, lambda: (3.0,))
_arg("argument_dict", lambda: {"amount": 2.0}, lambda v: v.update(amount=3.0), lambda: None)
_arg("argument_dict_of_tensors", lambda: {"amount": gc.tensor(2.0)}, lambda v: v.update(amount=gc.tensor(3.0)), _row)
_arg("argument_set", lambda: {1, 2}, lambda v: v.add(3), lambda: None)
_arg("argument_frozenset", lambda: frozenset({1, 2}), None, lambda: frozenset({1}))
_arg("argument_object", lambda: _Holder(2.0), lambda v: setattr(v, "amount", 3.0), lambda: None)
_arg("argument_object_replaced", lambda: _Holder(2.0), None, lambda: _Holder(3.0))
_arg("argument_object_of_tensor", lambda: _Holder(gc.tensor(2.0)), lambda v: v.amount.mul_(2), lambda: None)
_arg("argument_dataclass", lambda: _Record(2.0), lambda v: setattr(v, "amount", 3.0), lambda: None)
_arg("argument_namespace", lambda: SimpleNamespace(amount=2.0), lambda v: setattr(v, "amount", 3.0), lambda: None)
_arg("argument_function", lambda: _function(2.0), None, lambda: _function(3.0))
_arg(
    "argument_function_closure",
    lambda: _function(2.0),
    lambda v: setattr(v.__closure__[0], "cell_contents", 3.0),
    lambda: None,
)
_arg("argument_array", lambda: np.full(4, 2.0, np.float32), lambda v: v.fill(3.0), lambda: None)


@change()
def argument_added(s: Scene) -> None:
    s.extra = (2.0,)


@change()
def input_of_another_batch(s: Scene) -> None:
    s.change_input = lambda x: x[:2].detach().requires_grad_()
    s.loss = lambda output, target: output.mean()


@change()
def input_without_gradient(s: Scene) -> None:
    s.change_input = lambda x: x.detach()


@change()
def input_transposed_in_memory(s: Scene) -> None:
    s.change_input = lambda x: gc.tensor(x.detach().numpy().T.copy()).t().detach().requires_grad_()


@change()
def input_is_expanded(s: Scene) -> None:
    s.change_input = lambda x: x.detach()[:1].expand(5, 4).requires_grad_()


@change()
def input_is_flipped(s: Scene) -> None:
    s.change_input = lambda x: gc.from_numpy(x.detach().numpy()[::-1, ::-1]).requires_grad_()


@change()
def input_is_a_view_of_a_leaf(s: Scene) -> None:
    s.change_input = lambda x: x[:, :]


@change()
def input_is_a_result(s: Scene) -> None:
    s.change_input = lambda x: x * 2


@change()
def input_is_a_parameter(s: Scene) -> None:
    s.change_input = lambda x: s.layer.weight[[0, 1, 2, 3, 0]]


@change()
def input_of_inference_mode(s: Scene) -> None:
    def inside(x: Any) -> Any:
        with gc.inference_mode():
            return x.detach() * 2

    s.change_input = inside


@change()
def input_of_integers(s: Scene) -> None:
    s.change_input = lambda x: (x.detach() * 4).long()


@change()
def input_of_doubles(s: Scene) -> None:
    s.change_input = lambda x: x.detach().double()


# ---- modes, defaults and seeds


@change()
def grad_mode_off(s: Scene) -> None:
    gc.set_grad_enabled(False)


@change()
def grad_mode_on(s: Scene) -> None:
    gc.set_grad_enabled(True)


@change()
def grad_mode_off_and_on(s: Scene) -> Iterator[None]:
    gc.set_grad_enabled(False)
    yield
    gc.set_grad_enabled(True)


@change()
def inference_mode_entered(s: Scene) -> None:
    s.stack.enter_context(gc.inference_mode())


@change()
def inference_mode_left(s: Scene) -> Iterator[None]:
    mode = gc.inference_mode()
    mode.__enter__()
    s.model(s.next_input())
    mode.__exit__(None, None, None)
    yield


@change()
def default_dtype(s: Scene) -> Iterator[None]:
    s.model.head.forward = lambda x: x @ gc.ones(4, 3).to(x.dtype) + gc.tensor(0.1) + gc.zeros(3)
    yield
    gc.set_default_dtype(gc.float64)


@change()
def default_dtype_of_all(s: Scene) -> None:
    gc.set_default_dtype(gc.float64)


def _draws(s: Scene) -> None:
    s.model.head.forward = lambda x: x[:, :3] * gc.rand(3) + gc.rand(1)


@change()
def seed_set(s: Scene) -> Iterator[None]:
    _draws(s)
    yield
    gc.manual_seed(SEED + 1)


@change()
def seed_set_again(s: Scene) -> Iterator[None]:
    _draws(s)
    yield
    gc.manual_seed(SEED)


@change("rich")
def seed_of_dropout(s: Scene) -> None:
    gc.manual_seed(SEED + 1)


@change()
def random_state_restored(s: Scene) -> Iterator[None]:
    _draws(s)
    state = gc.get_rng_state()
    yield
    gc.set_rng_state(state)


@change()
def random_state_of_the_generator(s: Scene) -> Iterator[None]:
    _draws(s)
    yield
    gc.default_generator.set_state(gc.tensor([5, 5]))


@change()
def random_numbers_drawn_between(s: Scene) -> Iterator[None]:
    _draws(s)
    yield
    gc.rand(3)
    gc.randn(2)


@change()
def own_generator_seeded(s: Scene) -> Iterator[None]:
    generator = gc.Generator()
    s.model.head.forward = lambda x: x[:, :3] * gc.rand(3, generator=generator)
    yield
    generator.manual_seed(5)


@change()
def own_generator_replaced(s: Scene) -> Iterator[None]:
    holder = {"generator": gc.Generator()}
    s.model.head.forward = lambda x: x[:, :3] * gc.rand(3, generator=holder["generator"])
    yield
    holder["generator"] = gc.Generator().manual_seed(99)


@change()
def threads(s: Scene) -> None:
    s.stack.callback(gc.set_num_threads, gc.get_num_threads())
    gc.set_num_threads(1)


@change()
def environment_of_strict_hooks(s: Scene) -> None:
    s.stack.enter_context(gc.hooks.strict())


# ---- modules that change themselves


def _counting(s: Scene, forward: Callable[[Any, Any], Any], **start: Any) -> None:
    head: Any = nn.Linear(4, 3)
    for name, value in start.items():
        setattr(head, name, value)
    head.forward = lambda x: forward(head, x)
    s.model.head = head


def _increment(name: str, by: Callable[[Any], Any]) -> None:
    def counted(s: Scene) -> None:
        _counting(s, _forward_that_counts(by), count=1.0, memory=gc.zeros(3), items=[], table={"n": 0})

    add(name, counted)

    def counted_from_the_start(s: Scene) -> Iterator[None]:
        counted(s)
        yield

    add(f"{name}_from_the_start", counted_from_the_start)


def _forward_that_counts(by: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def forward(head: Any, x: Any) -> Any:
        by(head)
        return x[:, :3] * head.count + head.memory + len(head.items) + head.table["n"]

    return forward


_increment("forward_counts", lambda h: setattr(h, "count", h.count + 1))
_increment("forward_keeps_a_tensor", lambda h: setattr(h, "memory", h.memory * 0.5 + 1))
_increment("forward_writes_a_tensor", lambda h: h.memory.add_(1))
_increment("forward_appends", lambda h: h.items.append(1))
_increment("forward_writes_a_dict", lambda h: h.table.update(n=h.table["n"] + 1))
_increment("forward_writes_its_dict", lambda h: h.__dict__.update(count=h.count + 1))
