"""The front end judged by PyTorch's tables of operators, layers and optimizers, and by numpy's tables of functions."""
