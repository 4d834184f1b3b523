"""Changes of modules: members, children, tied weights, flags, element types and state."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tools.nets.changes.scene import Scene
from tools.nets.changes.table import change

# ---- nothing, and members


@change()
def nothing(s: Scene) -> None:
    """Change nothing, for comparison."""


@change()
def weight_replaced(s: Scene) -> None:
    s.layer.weight = nn.Parameter(gc.full((4, 4), 0.25))


@change()
def weight_replaced_by_setattr_of_none(s: Scene) -> None:
    s.layer.bias = None


@change()
def bias_given_again(s: Scene) -> Iterator[None]:
    s.layer.bias = None
    yield
    s.layer.bias = nn.Parameter(gc.full((4,), 0.5))


@change()
def bias_registered_as_none(s: Scene) -> None:
    s.layer.register_parameter("bias", None)


@change()
def weight_deleted_and_given_as_tensor(s: Scene) -> None:
    del s.layer.weight
    s.layer.weight = gc.full((4, 4), 0.125)


@change()
def weight_deleted(s: Scene) -> None:
    del s.layer.weight


@change()
def weight_in_parameters_table_replaced(s: Scene) -> None:
    s.layer._parameters["weight"] = nn.Parameter(gc.full((4, 4), 0.3))


@change()
def parameters_table_popped_and_put(s: Scene) -> None:
    s.layer._parameters["weight"] = nn.Parameter(s.layer._parameters.pop("weight").detach() * 2)


@change()
def parameters_table_replaced(s: Scene) -> None:
    old = s.layer._parameters
    s.layer.__dict__["_parameters"] = OrderedDict((k, nn.Parameter(v.detach() * 3)) for k, v in old.items())


@change()
def weight_of_another_shape(s: Scene) -> None:
    s.model.head.weight = nn.Parameter(gc.full((2, 4), 0.25))
    s.model.head.bias = nn.Parameter(gc.full((2,), 0.25))
    s.loss = lambda output, target: output.mean()


@change("rich")
def buffer_replaced(s: Scene) -> None:
    s.body.shift = gc.tensor([1.0, 2.0, 3.0, 4.0])


@change("rich")
def buffer_registered_again(s: Scene) -> None:
    s.body.register_buffer("shift", gc.tensor([1.0, 2.0, 3.0, 4.0]))


@change("rich")
def buffer_deleted_and_given_as_attribute(s: Scene) -> None:
    del s.body.shift
    s.body.shift = gc.tensor([4.0, 3.0, 2.0, 1.0])


@change("rich")
def buffer_becomes_parameter(s: Scene) -> None:
    value = s.body.shift.clone()
    del s.body.shift
    s.body.shift = nn.Parameter(value * 2)


@change("rich")
def parameter_becomes_buffer(s: Scene) -> None:
    value = s.body.scale.detach() * 2
    del s.body.scale
    s.body.register_buffer("scale", value)


@change("rich")
def buffer_of_another_shape(s: Scene) -> None:
    s.body.shift = gc.tensor([0.5])


@change()
def parameter_added_and_used(s: Scene) -> None:
    s.layer.extra = nn.Parameter(gc.full((4,), 0.5))
    layer = s.layer
    layer.forward = lambda x: F.linear(x, layer.weight, layer.bias) * layer.extra


@change()
def unused_parameter_added(s: Scene) -> None:
    s.layer.extra = nn.Parameter(gc.ones(2))


@change()
def unused_buffer_added(s: Scene) -> None:
    s.layer.register_buffer("extra", gc.ones(2))


# ---- children


@change()
def child_replaced(s: Scene) -> None:
    s.model.head = nn.Linear(4, 3)


@change()
def child_replaced_by_another_kind(s: Scene) -> None:
    s.model.head = nn.Sequential(nn.Linear(4, 3), nn.ReLU())


@change()
def child_replaced_by_identity(s: Scene) -> None:
    s.model.head = nn.Identity()
    s.loss = lambda output, target: output.mean()


@change()
def child_replaced_by_set_submodule(s: Scene) -> None:
    s.model.set_submodule("head", nn.Linear(4, 3))


@change()
def child_replaced_by_add_module(s: Scene) -> None:
    s.model.add_module("head", nn.Linear(4, 3))


@change()
def child_in_table_replaced(s: Scene) -> None:
    s.model._modules["head"] = nn.Linear(4, 3)


@change()
def child_deleted(s: Scene) -> None:
    del s.model.head


@change()
def child_deleted_and_given_as_function(s: Scene) -> None:
    del s.model.head
    s.model.head = lambda x: x[:, :3] * 2


@change()
def unused_child_added(s: Scene) -> None:
    s.model.extra = nn.Linear(2, 2)


@change()
def body_replaced(s: Scene) -> None:
    s.model.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())


@change("rich")
def list_of_modules_appended(s: Scene) -> None:
    s.body.parts.append(nn.Linear(4, 4))


@change("rich")
def list_of_modules_item_replaced(s: Scene) -> None:
    s.body.parts[0] = nn.Linear(4, 4)


@change("rich")
def list_of_modules_item_deleted(s: Scene) -> None:
    del s.body.parts[1]


@change("rich")
def list_of_modules_extended(s: Scene) -> None:
    s.body.parts.extend([nn.ReLU(), nn.Linear(4, 4)])


@change("rich")
def list_of_modules_inserted(s: Scene) -> None:
    s.body.parts.insert(0, nn.Tanh())


@change("lean")
def sequence_of_modules_appended(s: Scene) -> None:
    s.body.append(nn.Linear(4, 4))


@change("lean")
def sequence_of_modules_item_replaced(s: Scene) -> None:
    s.body[1] = nn.ReLU()


@change("lean")
def sequence_of_modules_item_deleted(s: Scene) -> None:
    del s.body[1]


@change("lean")
def sequence_of_modules_inserted(s: Scene) -> None:
    s.body.insert(1, nn.LeakyReLU())


@change()
def children_exchanged(s: Scene) -> None:
    if s.kind == "rich":
        s.body.first, s.body.second = s.body.second, s.body.first
    else:
        s.body[0], s.body[2] = s.body[2], s.body[0]


# ---- tied weights


@change()
def weights_tied(s: Scene) -> None:
    s.last.weight = s.layer.weight


@change()
def weights_untied(s: Scene) -> Iterator[None]:
    s.last.weight = s.layer.weight
    yield
    s.last.weight = nn.Parameter(gc.full((4, 4), 0.3))


@change()
def first_of_tied_weights_replaced(s: Scene) -> Iterator[None]:
    s.last.weight = s.layer.weight
    yield
    s.layer.weight = nn.Parameter(gc.full((4, 4), 0.3))


@change()
def tied_weights_both_replaced(s: Scene) -> Iterator[None]:
    s.last.weight = s.layer.weight
    yield
    s.layer.weight = s.last.weight = nn.Parameter(gc.full((4, 4), 0.3))


@change()
def tied_weights_untied_by_clones(s: Scene) -> Iterator[None]:
    s.last.weight = s.layer.weight
    yield
    s.last.weight = nn.Parameter(s.layer.weight.detach().clone())


@change()
def tied_modules_untied(s: Scene) -> Iterator[None]:
    if s.kind == "rich":
        s.body.second = s.body.first
        yield
        s.body.second = nn.Linear(4, 4)
    else:
        s.body[2] = s.body[0]
        yield
        s.body[2] = nn.Linear(4, 4)


@change()
def weights_that_share_memory_parted(s: Scene) -> Iterator[None]:
    s.last.weight.data = s.layer.weight.data
    yield
    s.last.weight.data = s.layer.weight.data.clone() * 2


@change()
def weights_that_share_memory_written(s: Scene) -> Iterator[None]:
    s.last.weight.data = s.layer.weight.data
    yield
    with gc.no_grad():
        s.layer.weight.mul_(2)


# ---- flags


@change()
def train_mode(s: Scene) -> None:
    s.model.train()


@change()
def eval_mode(s: Scene) -> None:
    s.model.eval()


@change()
def mode_there_and_back(s: Scene) -> None:
    s.model.train(not s.model.training)
    s.model(s.next_input())
    s.model.train(not s.model.training)


@change("rich")
def one_child_in_eval_mode(s: Scene) -> None:
    s.body.drop.eval()


@change("rich")
def norm_in_eval_mode(s: Scene) -> None:
    s.body.norm.eval()


@change("rich")
def training_flag_assigned(s: Scene) -> None:
    s.body.drop.training = False


@change("rich")
def training_flag_in_dict(s: Scene) -> None:
    s.body.drop.__dict__["training"] = False


@change()
def requires_grad_off(s: Scene) -> None:
    s.model.requires_grad_(False)


@change()
def requires_grad_of_a_weight_off(s: Scene) -> None:
    s.layer.weight.requires_grad = False


@change()
def requires_grad_of_a_layer_off(s: Scene) -> None:
    s.layer.requires_grad_(False)


@change()
def requires_grad_on_again(s: Scene) -> Iterator[None]:
    s.layer.requires_grad_(False)
    yield
    s.layer.requires_grad_(True)


@change("rich")
def buffer_requires_grad(s: Scene) -> None:
    s.body.shift.requires_grad_()


# ---- types and state


@change()
def model_to_double(s: Scene) -> None:
    s.model.double()
    s.change_input = lambda x: x.detach().double().requires_grad_()


@change()
def model_to_double_and_back(s: Scene) -> None:
    s.model.double().float()


@change()
def model_to_dtype(s: Scene) -> None:
    s.model.to(gc.float64)
    s.change_input = lambda x: x.detach().double().requires_grad_()


@change()
def layer_to_double(s: Scene) -> None:
    s.layer.double()


@change()
def model_type(s: Scene) -> None:
    s.model.type(gc.float64)
    s.change_input = lambda x: x.detach().double().requires_grad_()


@change()
def model_to_empty_and_filled(s: Scene) -> None:
    s.model.to_empty(device="cpu")
    for tensor in (*s.model.parameters(), *s.model.buffers()):
        tensor.data.fill_(0.25 if tensor.is_floating_point() else 1)


@change()
def model_shared_memory(s: Scene) -> None:
    s.model.share_memory()
    s.layer.weight.numpy(force=True)[:] = 0.25


@change()
def model_to_cpu(s: Scene) -> None:
    s.model.cpu()


@change()
def state_loaded(s: Scene) -> None:
    s.model.load_state_dict({k: v * 0.5 for k, v in s.model.state_dict().items()})


@change()
def state_loaded_by_assignment(s: Scene) -> None:
    state = {k: v * 0.5 if v.is_floating_point() else v.clone() for k, v in s.model.state_dict().items()}
    s.model.load_state_dict(state, assign=True)


@change()
def state_of_a_child_loaded(s: Scene) -> None:
    s.layer.load_state_dict({"weight": gc.full((4, 4), 0.2), "bias": gc.full((4,), 0.1)})


@change()
def values_of_state_dict_written(s: Scene) -> None:
    with gc.no_grad():
        s.model.state_dict()["head.weight"].mul_(3)


@change()
def state_restored_after_training(s: Scene) -> None:
    before = copy.deepcopy(s.model.state_dict())
    s.model(s.next_input()).sum().backward() if gc.is_grad_enabled() else None
    s.optimizer.step()
    s.model.load_state_dict(before)


@change()
def extra_state_with_effect(s: Scene) -> Iterator[None]:
    layer = s.layer
    layer.power = 1.0
    layer.forward = lambda x: F.linear(x, layer.weight, layer.bias) * layer.power
    layer.set_extra_state = lambda state: setattr(layer, "power", state)
    yield
    layer.set_extra_state(2.0)


@change()
def weights_initialised_again(s: Scene) -> None:
    s.model.apply(lambda m: nn.init.constant_(m.weight, 0.2) if isinstance(m, nn.Linear) else None)


@change()
def reset_parameters(s: Scene) -> None:
    s.layer.reset_parameters()


@change()
def gradient_cleared_to_zeros(s: Scene) -> None:
    s.model.zero_grad(set_to_none=False)


@change()
def copy_of_the_model_changed(s: Scene) -> None:
    other = copy.deepcopy(s.model)
    with gc.no_grad():
        for parameter in other.parameters():
            parameter.mul_(3)


@change()
def child_replaced_by_its_copy(s: Scene) -> None:
    s.model.head = copy.deepcopy(s.model.head)
    with gc.no_grad():
        s.model.head.weight.mul_(2)


@change()
def child_replaced_by_its_shallow_copy(s: Scene) -> None:
    s.model.head = copy.copy(s.model.head)
    s.model.head.weight = nn.Parameter(gc.full((3, 4), 0.2))


@change()
def vector_to_parameters(s: Scene) -> None:
    vector = nn.utils.parameters_to_vector(s.model.parameters()).detach() * 0.5
    nn.utils.vector_to_parameters(vector, s.model.parameters())


@change()
def gradients_clipped(s: Scene) -> None:
    nn.utils.clip_grad_norm_(s.model.parameters(), 0.1)


@change()
def layers_fused_into_one(s: Scene) -> None:
    s.model.eval()
    if s.kind == "rich":
        s.body.first, s.body.norm = nn.utils.fuse_linear_bn_eval(s.body.first.eval(), s.body.norm), nn.Identity()
