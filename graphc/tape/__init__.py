"""Autograd state of tensors: nodes, modes, tangents, and hook handles."""
