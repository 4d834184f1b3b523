"""Joint graphs of forward and backward passes: what a backward pass need not keep, and where they are cut in two."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import default_partition

aten = torch.ops.aten
UNREAD = {
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: (4, 5),
    aten.adaptive_max_pool2d_backward.default: (2,),
    aten.log_sigmoid_backward.default: (2,),
    aten.max_pool2d_with_indices_backward.default: (7,),
    aten.max_pool3d_with_indices_backward.default: (7,),
    aten.nll_loss2d_backward.default: (6,),
    aten.nll_loss_backward.default: (6,),
}
"""Backward operators whose rules find out again what PyTorch's kernels keep, by the numbers of these arguments."""


def partition(joint: fx.GraphModule, inputs: Any, **named: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The forward and the backward graph of a joint one, in which the latter keeps nothing that it does not read."""
    for node in joint.graph.nodes:
        for i in UNREAD.get(node.target, ()):
            # The second argument is what the forward function was applied to, which the rules do read.
            node.update_arg(i, node.args[1])
    joint.graph.eliminate_dead_code()
    joint.recompile()
    return default_partition(joint, inputs, **named)
