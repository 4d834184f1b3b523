"""Changes of modules: members, children, tied weights, flags, element types and state."""

from __future__ import annotations

from tools.nets.changes.table import changes

changes("""
nothing: pass
weight_replaced: s.layer.weight = nn.Parameter(gc.full((4, 4), 0.25))
weight_replaced_by_setattr_of_none: s.layer.bias = None
bias_given_again: s.layer.bias = None => s.layer.bias = nn.Parameter(gc.full((4,), 0.5))
bias_registered_as_none: s.layer.register_parameter("bias", None)
weight_deleted_and_given_as_tensor:
    del s.layer.weight
    s.layer.weight = gc.full((4, 4), 0.125)
weight_deleted: del s.layer.weight
weight_in_parameters_table_replaced: s.layer._parameters["weight"] = nn.Parameter(gc.full((4, 4), 0.3))
parameters_table_popped_and_put:
    s.layer._parameters["weight"] = nn.Parameter(s.layer._parameters.pop("weight").detach() * 2)
parameters_table_replaced:
    old = s.layer._parameters
    s.layer.__dict__["_parameters"] = OrderedDict((k, nn.Parameter(v.detach() * 3)) for k, v in old.items())
weight_of_another_shape:
    s.model.head.weight = nn.Parameter(gc.full((2, 4), 0.25))
    s.model.head.bias = nn.Parameter(gc.full((2,), 0.25))
    s.loss = lambda output, target: output.mean()
buffer_replaced [rich]: s.body.shift = gc.tensor([1.0, 2.0, 3.0, 4.0])
buffer_registered_again [rich]: s.body.register_buffer("shift", gc.tensor([1.0, 2.0, 3.0, 4.0]))
buffer_deleted_and_given_as_attribute [rich]:
    del s.body.shift
    s.body.shift = gc.tensor([4.0, 3.0, 2.0, 1.0])
buffer_becomes_parameter [rich]:
    value = s.body.shift.clone()
    del s.body.shift
    s.body.shift = nn.Parameter(value * 2)
parameter_becomes_buffer [rich]:
    value = s.body.scale.detach() * 2
    del s.body.scale
    s.body.register_buffer("scale", value)
buffer_of_another_shape [rich]: s.body.shift = gc.tensor([0.5])
parameter_added_and_used:
    s.layer.extra = nn.Parameter(gc.full((4,), 0.5))
    layer = s.layer
    layer.forward = lambda x: F.linear(x, layer.weight, layer.bias) * layer.extra
unused_parameter_added: s.layer.extra = nn.Parameter(gc.ones(2))
unused_buffer_added: s.layer.register_buffer("extra", gc.ones(2))
child_replaced: s.model.head = nn.Linear(4, 3)
child_replaced_by_another_kind: s.model.head = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
child_replaced_by_identity:
    s.model.head = nn.Identity()
    s.loss = lambda output, target: output.mean()
child_replaced_by_set_submodule: s.model.set_submodule("head", nn.Linear(4, 3))
child_replaced_by_add_module: s.model.add_module("head", nn.Linear(4, 3))
child_in_table_replaced: s.model._modules["head"] = nn.Linear(4, 3)
child_deleted: del s.model.head
child_deleted_and_given_as_function:
    del s.model.head
    s.model.head = lambda x: x[:, :3] * 2
unused_child_added: s.model.extra = nn.Linear(2, 2)
body_replaced: s.model.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
list_of_modules_appended [rich]: s.body.parts.append(nn.Linear(4, 4))
list_of_modules_item_replaced [rich]: s.body.parts[0] = nn.Linear(4, 4)
list_of_modules_item_deleted [rich]: del s.body.parts[1]
list_of_modules_extended [rich]: s.body.parts.extend([nn.ReLU(), nn.Linear(4, 4)])
list_of_modules_inserted [rich]: s.body.parts.insert(0, nn.Tanh())
sequence_of_modules_appended [lean]: s.body.append(nn.Linear(4, 4))
sequence_of_modules_item_replaced [lean]: s.body[1] = nn.ReLU()
sequence_of_modules_item_deleted [lean]: del s.body[1]
sequence_of_modules_inserted [lean]: s.body.insert(1, nn.LeakyReLU())
children_exchanged:
    if s.kind == "rich":
        s.body.first, s.body.second = s.body.second, s.body.first
    else:
        s.body[0], s.body[2] = s.body[2], s.body[0]
weights_tied: s.last.weight = s.layer.weight
weights_untied: s.last.weight = s.layer.weight => s.last.weight = nn.Parameter(gc.full((4, 4), 0.3))
first_of_tied_weights_replaced: s.last.weight = s.layer.weight => s.layer.weight = nn.Parameter(gc.full((4, 4), 0.3))
tied_weights_both_replaced:
    s.last.weight = s.layer.weight
    yield
    s.layer.weight = s.last.weight = nn.Parameter(gc.full((4, 4), 0.3))
tied_weights_untied_by_clones:
    s.last.weight = s.layer.weight
    yield
    s.last.weight = nn.Parameter(s.layer.weight.detach().clone())
tied_modules_untied:
    if s.kind == "rich":
        s.body.second = s.body.first
        yield
        s.body.second = nn.Linear(4, 4)
    else:
        s.body[2] = s.body[0]
        yield
        s.body[2] = nn.Linear(4, 4)
weights_that_share_memory_parted:
    s.last.weight.data = s.layer.weight.data
    yield
    s.last.weight.data = s.layer.weight.data.clone() * 2
weights_that_share_memory_written:
    s.last.weight.data = s.layer.weight.data
    yield
    with gc.no_grad():
        s.layer.weight.mul_(2)
train_mode: s.model.train()
eval_mode: s.model.eval()
mode_there_and_back:
    s.model.train(not s.model.training)
    s.model(s.next_input())
    s.model.train(not s.model.training)
one_child_in_eval_mode [rich]: s.body.drop.eval()
norm_in_eval_mode [rich]: s.body.norm.eval()
training_flag_assigned [rich]: s.body.drop.training = False
training_flag_in_dict [rich]: s.body.drop.__dict__["training"] = False
requires_grad_off: s.model.requires_grad_(False)
requires_grad_of_a_weight_off: s.layer.weight.requires_grad = False
requires_grad_of_a_layer_off: s.layer.requires_grad_(False)
requires_grad_on_again: s.layer.requires_grad_(False) => s.layer.requires_grad_(True)
buffer_requires_grad [rich]: s.body.shift.requires_grad_()
model_to_double:
    s.model.double()
    s.change_input = lambda x: x.detach().double().requires_grad_()
model_to_double_and_back: s.model.double().float()
model_to_dtype:
    s.model.to(gc.float64)
    s.change_input = lambda x: x.detach().double().requires_grad_()
layer_to_double: s.layer.double()
model_type:
    s.model.type(gc.float64)
    s.change_input = lambda x: x.detach().double().requires_grad_()
model_to_empty_and_filled:
    s.model.to_empty(device="cpu")
    for tensor in (*s.model.parameters(), *s.model.buffers()):
        tensor.data.fill_(0.25 if tensor.is_floating_point() else 1)
model_shared_memory:
    s.model.share_memory()
    s.layer.weight.numpy(force=True)[:] = 0.25
model_to_cpu: s.model.cpu()
state_loaded: s.model.load_state_dict({k: v * 0.5 for k, v in s.model.state_dict().items()})
state_loaded_by_assignment:
    state = {k: v * 0.5 if v.is_floating_point() else v.clone() for k, v in s.model.state_dict().items()}
    s.model.load_state_dict(state, assign=True)
state_of_a_child_loaded: s.layer.load_state_dict({"weight": gc.full((4, 4), 0.2), "bias": gc.full((4,), 0.1)})
values_of_state_dict_written:
    with gc.no_grad():
        s.model.state_dict()["head.weight"].mul_(3)
state_restored_after_training:
    before = copy.deepcopy(s.model.state_dict())
    s.model(s.next_input()).sum().backward() if gc.is_grad_enabled() else None
    s.optimizer.step()
    s.model.load_state_dict(before)
extra_state_with_effect:
    layer = s.layer
    layer.power = 1.0
    layer.forward = lambda x: F.linear(x, layer.weight, layer.bias) * layer.power
    layer.set_extra_state = lambda state: setattr(layer, "power", state)
    yield
    layer.set_extra_state(2.0)
weights_initialised_again:
    s.model.apply(lambda m: nn.init.constant_(m.weight, 0.2) if isinstance(m, nn.Linear) else None)
reset_parameters: s.layer.reset_parameters()
gradient_cleared_to_zeros: s.model.zero_grad(set_to_none=False)
copy_of_the_model_changed:
    other = copy.deepcopy(s.model)
    with gc.no_grad():
        for parameter in other.parameters():
            parameter.mul_(3)
child_replaced_by_its_copy:
    s.model.head = copy.deepcopy(s.model.head)
    with gc.no_grad():
        s.model.head.weight.mul_(2)
child_replaced_by_its_shallow_copy:
    s.model.head = copy.copy(s.model.head)
    s.model.head.weight = nn.Parameter(gc.full((3, 4), 0.2))
vector_to_parameters:
    vector = nn.utils.parameters_to_vector(s.model.parameters()).detach() * 0.5
    nn.utils.vector_to_parameters(vector, s.model.parameters())
gradients_clipped: nn.utils.clip_grad_norm_(s.model.parameters(), 0.1)
layers_fused_into_one:
    s.model.eval()
    if s.kind == "rich":
        s.body.first, s.body.norm = nn.utils.fuse_linear_bn_eval(s.body.first.eval(), s.body.norm), nn.Identity()
""")
