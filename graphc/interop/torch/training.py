"""Joint graphs of forward and backward passes: the arguments that backward passes do without, and the partition."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import default_partition
from torch.fx.experimental.symbolic_shapes import statically_known_true

from graphc.interop.torch import parts
from graphc.interop.torch.fallback import refusal

aten = torch.ops.aten
UNREAD = {
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: (4, 5),
    aten.adaptive_max_pool2d_backward.default: (2,),
    aten.log_sigmoid_backward.default: (2,),
    aten.max_pool2d_with_indices_backward.default: (7,),
    aten.max_pool3d_with_indices_backward.default: (7,),
    aten.mkldnn_rnn_layer_backward.default: (22,),
    aten.nll_loss2d_backward.default: (6,),
    aten.nll_loss_backward.default: (6,),
}
"""Indices of arguments that graphc's rules recompute and PyTorch's kernels keep, by backward operator."""

_PASS = "partitioner_tag"
"""PyTorch's metadata key for the pass of a node."""


def partition(joint: fx.GraphModule, inputs: Any, **named: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Split a joint graph into forward and backward graphs.

    The backward graph keeps only the values it reads, and views them itself.
    """
    for node in joint.graph.nodes:
        unread = UNREAD.get(node.target, ())
        if not unread or refusal(node):
            continue  # PyTorch computes this node and reads all arguments
        node.meta[parts.UNREAD] = True
        for i in unread:
            # The second argument is the input of the forward function, which the rules read anyway.
            node.update_arg(i, node.args[1])
    joint.graph.eliminate_dead_code()
    _move_views(joint.graph)
    joint.recompile()
    return default_partition(joint, inputs, **named)


def _move_views(graph: fx.Graph) -> None:
    """Give backward passes their own views of memory that forward passes view.

    The viewed memory is then kept once, and views are not copied. Backward passes also compute fractions of sizes
    themselves, because programs only take integers.
    """
    own: dict[fx.Node, fx.Node] = {}
    for node in list(graph.nodes):
        if node.op == "call_function" and not _is_forward(node):
            for used in node.all_input_nodes:
                if (replacement := _moved(graph, used, node, own)) is not used:
                    node.replace_input_with(used, replacement)


def _is_forward(node: fx.Node) -> bool:
    return node.meta.get(_PASS) == "is_forward"


def _moved(graph: fx.Graph, node: fx.Node, before: fx.Node, own: dict[fx.Node, fx.Node]) -> fx.Node:
    if node in own or not _is_forward(node) or not (_is_whole_view(node) or _is_fraction(node)):
        return own.get(node, node)
    sources = {n: _moved(graph, n, before, own) for n in node.all_input_nodes}
    with graph.inserting_before(before):
        own[node] = graph.node_copy(node, sources.__getitem__)
    own[node].meta = {**node.meta, _PASS: "is_backward"}
    return own[node]


def _is_fraction(node: fx.Node) -> bool:
    return node.op == "call_function" and isinstance(parts.value_of(node), torch.SymFloat) and not refusal(node)


def _is_whole_view(node: fx.Node) -> bool:
    """Check whether a node views all of its only operand, or views a parameter."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not target.is_view or len(node.all_input_nodes) != 1:
        return False
    source = node.all_input_nodes[0]
    view, base = node.meta.get("val"), source.meta.get("val")
    if not isinstance(view, torch.Tensor) or not isinstance(base, torch.Tensor):
        return False
    return source.op == "placeholder" or statically_known_true(view.numel() >= base.numel())
