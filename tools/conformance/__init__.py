"""The front end judged by PyTorch's own tables of operators, layers and optimizers, and by numpy's tables of functions."""
