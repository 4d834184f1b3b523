"""PyTorch's import path for Module and for hooks on all modules."""

from graphc.nn.module import Module
from graphc.nn.module_hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

__all__ = ["Module", "register_module_backward_hook", "register_module_buffer_registration_hook"]
__all__ += ["register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook"]
__all__ += ["register_module_full_backward_pre_hook", "register_module_module_registration_hook"]
__all__ += ["register_module_parameter_registration_hook"]
