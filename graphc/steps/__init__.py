"""Compiled training steps: forward pass, gradients, clipping and the update of an optimizer as one program."""
