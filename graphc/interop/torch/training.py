"""Joint graphs of forward and backward passes: what a backward pass need not keep, and where they are cut in two."""

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
"""Backward operators whose rules find out again what PyTorch's kernels keep, by the numbers of these arguments."""

_PASS = "partitioner_tag"
"""Where PyTorch says of a node to which pass it belongs."""


def partition(joint: fx.GraphModule, inputs: Any, **named: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The forward and the backward graph of a joint one, in which the latter keeps nothing that it does not read, and
    looks itself at what it keeps through views."""
    for node in joint.graph.nodes:
        unread = UNREAD.get(node.target, ())
        if not unread or refusal(node):
            continue  # PyTorch computes it, and reads them all
        node.meta[parts.UNREAD] = True
        for i in unread:
            # The second argument is what the forward function was applied to, which the rules do read.
            node.update_arg(i, node.args[1])
    joint.graph.eliminate_dead_code()
    _move_views(joint.graph)
    joint.recompile()
    return default_partition(joint, inputs, **named)


def _move_views(graph: fx.Graph) -> None:
    """Gives backward passes views of their own of what forward passes look at through views, so that the memory behind
    is kept, once, and no copy is made of a view. Fractions of sizes they compute themselves, too: programs are given
    whole numbers."""
    own: dict[fx.Node, fx.Node] = {}
    for node in list(graph.nodes):
        if node.op == "call_function" and not _is_forward(node):
            for used in node.all_input_nodes:
                if (moved := _moved(graph, used, node, own)) is not used:
                    node.replace_input_with(used, moved)


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
    """Whether a node looks at the memory of its only operand, at no small part of it, or at that of a parameter."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not target.is_view or len(node.all_input_nodes) != 1:
        return False
    source = node.all_input_nodes[0]
    found, whole = node.meta.get("val"), source.meta.get("val")
    if not isinstance(found, torch.Tensor) or not isinstance(whole, torch.Tensor):
        return False
    return source.op == "placeholder" or statically_known_true(found.numel() >= whole.numel())
