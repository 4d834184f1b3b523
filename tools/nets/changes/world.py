"""Changes around a module: plain attributes, containers, globals, closures, defaults, arguments, modes, seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import graphc as gc
from tools.nets.changes.scene import Scene
from tools.nets.changes.table import changes


def row() -> Any:
    """Return a tensor of four numbers."""
    return gc.tensor([1.0, 2.0, 3.0, 4.0])


def replace_in(s: Scene, module: Any, name: str, value: Any) -> None:
    """Replace a member of a module until the case ends."""
    s.stack.callback(setattr, module, name, getattr(module, name))
    setattr(module, name, value)


changes(
    """
attribute_number: s.body.factor = 3.0
attribute_number_to_integer: s.body.factor = 3
attribute_number_to_negative_zero: s.body.factor = -0.0
attribute_number_to_nan: s.body.factor = float("nan")
attribute_number_to_tensor: s.body.factor = gc.tensor(2.0)
attribute_number_to_numpy: s.body.factor = np.float32(2.5)
attribute_text: s.body.mode = "other"
attribute_flag: s.body.flag = False
attribute_none: s.body.absent = 1
attribute_list: s.body.sizes = [3.0, 4.0]
attribute_list_item: s.body.sizes[0] = 5.0
attribute_list_appended: s.body.sizes.append(3.0)
attribute_list_popped: s.body.sizes.pop()
attribute_list_cleared: s.body.sizes.clear()
attribute_list_reversed: s.body.sizes.reverse()
attribute_dict_item: s.body.nested["gain"] = 2.0
attribute_dict_updated: s.body.nested.update(gain=3.0)
attribute_dict_item_deleted: s.body.nested.pop("gain")
attribute_dict_deep_item: s.body.nested["deep"][1].update(low=0.75)
attribute_dict_deep_list: s.body.nested["deep"][1] = {"low": 2.0}
attribute_object: s.body.settings = types.SimpleNamespace(shift=lambda: 2.0, row=row())
attribute_object_number: s.body.settings.amount = 2.0
attribute_object_tensor: s.body.settings.row = row()
attribute_object_tensor_written: s.body.settings.row.mul_(2)
attribute_object_method: s.body.settings.shift = lambda: 3.0
attribute_object_method_of_class: type(s.body.settings).shift = lambda self: 3.0
attribute_object_in_dict: s.body.settings.__dict__.update(amount=2.5)
attribute_tensor: s.body.memory = row()
attribute_tensor_in_dict: s.body.__dict__.update(memory=row())
attribute_list_of_tensors_item: s.body.rows[0] = row()
attribute_list_of_tensors_appended: s.body.rows.append(row())
attribute_in_dict: s.body.__dict__["factor"] = 4.0
attribute_dict_replaced_as_a_whole: s.body.__dict__.update(factor=4.0, mode="other")
attribute_by_object_setattr: object.__setattr__(s.body, "factor", 4.0)
attribute_deleted: del s.body.factor
attribute_deleted_that_hides_one_of_the_class: del s.body.mode
attribute_that_hides_one_of_the_class: s.body.sign = 3.0
attribute_function: s.body.closed = lambda x: x * 2
class_attribute: type(s.body).sign = 3.0
class_attribute_deleted: del type(s.body).sign
class_attribute_becomes_property: type(s.body).sign = property(lambda self: 3.0)
class_of_object_attribute: type(s.world.SETTINGS).bias = 3.0
dropout_p: s.body.drop.p = 0.75
dropout_p_zero: s.body.drop.p = 0.0
norm_eps: s.body.norm.eps = 0.5
norm_momentum: s.body.norm.momentum = 0.5
norm_momentum_none: s.body.norm.momentum = None
norm_track_running_stats: s.body.norm.track_running_stats = False
norm_running_stats_reset: s.body.norm.reset_running_stats()
norm_running_mean_none: s.body.norm.running_mean = s.body.norm.running_var = None
norm_weight_none: s.body.norm.weight = None
global_number: s.world.GAIN = 3.0
global_number_in_dict: vars(s.world).update(GAIN=4.0)
global_number_to_tensor: s.world.GAIN = gc.tensor(2.0)
global_number_deleted: del s.world.GAIN
global_text: s.world.WORD = "other"
global_tuple: s.world.PAIR = (2.0, 1.0)
global_dict_item: s.world.OPTIONS.update(slope=2.0)
global_dict_new_item: s.world.OPTIONS.update(extra=1)
global_dict: s.world.OPTIONS = {"slope": 3.0}
global_list_item: s.world.STEPS[0] = 3.0
global_list_appended: s.world.STEPS.append(1.0)
global_set: s.world.CHOSEN.add(7)
global_tensor: s.world.TABLE = row()
global_list_of_tensors: s.world.TABLES[0] = row()
global_list_of_tensors_written: s.world.TABLES[0].mul_(2)
global_object_number: s.world.SETTINGS.amount = 3.0
global_object: s.world.SETTINGS = types.SimpleNamespace(amount=2.0, bias=1.0)
global_function: s.world.bend = lambda x: x * 2
global_function_defaults: s.world.bend.__defaults__ = (2.0,)
global_function_keyword_defaults: s.world.bend.__kwdefaults__.update(more=2.0)
global_function_keyword_defaults_replaced: s.world.bend.__kwdefaults__ = {"more": 3.0}
global_function_code: s.world.bend.__code__ = s.world.other_bend.__code__
global_module_function: replace_in(s, s.world.F, "softplus", lambda x: x * 3)
global_package_function: replace_in(s, gc, "tanh", gc.sigmoid)
global_hides_a_builtin: s.world.sum = lambda values: 3.0
closure_number: s.body.change(number=2.0)
closure_tensor: s.body.change(tensor=row())
closure_tensor_written: s.body.closed.__closure__[1].cell_contents.mul_(2)
closure_cell_contents: s.body.closed.__closure__[0].cell_contents = 3.0
""",
    {"row": row, "replace_in": replace_in},
    ("rich",),
)


# ---- arguments other than tensors


class Holder:
    """A plain object as an argument."""

    def __init__(self, amount: Any):
        self.amount = amount


@dataclasses.dataclass
class Record:
    """A dataclass as an argument."""

    amount: Any


def function(amount: float) -> Callable[[], float]:
    """Return a function with a closure."""

    def constant() -> float:
        return amount

    return constant


changes(
    """
argument_number: s.extra = (2.0,) => s.extra = (3.0,)
argument_number_negative_zero: s.extra = (0.0,) => s.extra = (-0.0,)
argument_number_to_integer: s.extra = (2.0,) => s.extra = (2,)
argument_number_to_flag: s.extra = (1,) => s.extra = (True,)
argument_number_nan: s.extra = (float("nan"),) => s.extra = (float("inf"),)
argument_numpy_number: s.extra = (np.float32(2.0),) => s.extra = (np.float32(3.0),)
argument_tensor: s.extra = (gc.tensor(2.0),) => s.extra = (gc.tensor(3.0),)
argument_tensor_to_number: s.extra = (gc.tensor(2.0),) => s.extra = (2.0,)
argument_tensor_written: s.extra = (gc.tensor(2.0),) => s.extra[0].mul_(2)
argument_none: s.extra = (2.0,) => s.extra = (None,)
argument_list: s.extra = ([2.0],) => s.extra[0][0] = 3.0
argument_list_replaced: s.extra = ([2.0],) => s.extra = ([3.0],)
argument_tuple_replaced: s.extra = ((2.0,),) => s.extra = ((3.0,),)
argument_dict: s.extra = ({"amount": 2.0},) => s.extra[0].update(amount=3.0)
argument_dict_of_tensors: s.extra = ({"amount": gc.tensor(2.0)},) => s.extra[0].update(amount=gc.tensor(3.0))
argument_set: s.extra = ({1, 2},) => s.extra[0].add(3)
argument_frozenset: s.extra = (frozenset({1, 2}),) => s.extra = (frozenset({1}),)
argument_object: s.extra = (Holder(2.0),) => s.extra[0].amount = 3.0
argument_object_replaced: s.extra = (Holder(2.0),) => s.extra = (Holder(3.0),)
argument_object_of_tensor: s.extra = (Holder(gc.tensor(2.0)),) => s.extra[0].amount.mul_(2)
argument_dataclass: s.extra = (Record(2.0),) => s.extra[0].amount = 3.0
argument_namespace: s.extra = (types.SimpleNamespace(amount=2.0),) => s.extra[0].amount = 3.0
argument_function: s.extra = (function(2.0),) => s.extra = (function(3.0),)
argument_function_closure: s.extra = (function(2.0),) => s.extra[0].__closure__[0].cell_contents = 3.0
argument_array: s.extra = (np.full(4, 2.0, np.float32),) => s.extra[0].fill(3.0)
""",
    {"Holder": Holder, "Record": Record, "function": function},
    ("lean",),
)


# ---- inputs, modes, defaults, seeds


def draws(s: Scene) -> None:
    """Let the head draw random numbers."""
    s.model.head.forward = lambda x: x[:, :3] * gc.rand(3) + gc.rand(1)


changes(
    """
argument_added: s.extra = (2.0,)
input_of_another_batch:
    s.change_input = lambda x: x[:2].detach().requires_grad_()
    s.loss = lambda output, target: output.mean()
input_without_gradient: s.change_input = lambda x: x.detach()
input_transposed_in_memory:
    s.change_input = lambda x: gc.tensor(x.detach().numpy().T.copy()).t().detach().requires_grad_()
input_is_expanded: s.change_input = lambda x: x.detach()[:1].expand(5, 4).requires_grad_()
input_is_flipped: s.change_input = lambda x: gc.from_numpy(x.detach().numpy()[::-1, ::-1]).requires_grad_()
input_is_a_view_of_a_leaf: s.change_input = lambda x: x[:, :]
input_is_a_result: s.change_input = lambda x: x * 2
input_is_a_parameter: s.change_input = lambda x: s.layer.weight[[0, 1, 2, 3, 0]]
input_of_inference_mode:
    def inside(x):
        with gc.inference_mode():
            return x.detach() * 2
    s.change_input = inside
input_of_integers: s.change_input = lambda x: (x.detach() * 4).long()
input_of_doubles: s.change_input = lambda x: x.detach().double()
grad_mode_off: gc.set_grad_enabled(False)
grad_mode_on: gc.set_grad_enabled(True)
grad_mode_off_and_on: gc.set_grad_enabled(False) => gc.set_grad_enabled(True)
inference_mode_entered: s.stack.enter_context(gc.inference_mode())
inference_mode_left:
    mode = gc.inference_mode()
    mode.__enter__()
    s.model(s.next_input())
    mode.__exit__(None, None, None)
    yield
default_dtype:
    s.model.head.forward = lambda x: x @ gc.ones(4, 3).to(x.dtype) + gc.tensor(0.1) + gc.zeros(3)
    yield
    gc.set_default_dtype(gc.float64)
default_dtype_of_all: gc.set_default_dtype(gc.float64)
seed_set: draws(s) => gc.manual_seed(SEED + 1)
seed_set_again: draws(s) => gc.manual_seed(SEED)
seed_of_dropout [rich]: gc.manual_seed(SEED + 1)
random_state_restored:
    draws(s)
    state = gc.get_rng_state()
    yield
    gc.set_rng_state(state)
random_state_of_the_generator: draws(s) => gc.default_generator.set_state(gc.tensor([5, 5]))
random_numbers_drawn_between:
    draws(s)
    yield
    gc.rand(3)
    gc.randn(2)
own_generator_seeded:
    generator = gc.Generator()
    s.model.head.forward = lambda x: x[:, :3] * gc.rand(3, generator=generator)
    yield
    generator.manual_seed(5)
own_generator_replaced:
    holder = {"generator": gc.Generator()}
    s.model.head.forward = lambda x: x[:, :3] * gc.rand(3, generator=holder["generator"])
    yield
    holder["generator"] = gc.Generator().manual_seed(99)
threads:
    s.stack.callback(gc.set_num_threads, gc.get_num_threads())
    gc.set_num_threads(1)
environment_of_strict_hooks: s.stack.enter_context(gc.hooks.strict())
""",
    {"draws": draws},
)

# ---- modules that change themselves

_COUNTED = """
{name}:
    s.model.head = head = nn.Linear(4, 3)
    head.count, head.memory, head.items, head.table = 1.0, gc.zeros(3), [], {{"n": 0}}
    def forward(x):
        {statement}
        return x[:, :3] * head.count + head.memory + len(head.items) + head.table["n"]
    head.forward = forward
"""
for _name, _statement in {
    "forward_counts": "head.count += 1",
    "forward_keeps_a_tensor": "head.memory = head.memory * 0.5 + 1",
    "forward_writes_a_tensor": "head.memory.add_(1)",
    "forward_appends": "head.items.append(1)",
    "forward_writes_a_dict": "head.table.update(n=head.table['n'] + 1)",
    "forward_writes_its_dict": "head.__dict__.update(count=head.count + 1)",
}.items():
    changes(_COUNTED.format(name=_name, statement=_statement))
    changes(_COUNTED.format(name=f"{_name}_from_the_start", statement=_statement) + "    yield\n")
