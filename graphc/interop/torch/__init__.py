"""Models of PyTorch, as a backend of ``torch.compile`` and as modules of graphc; needs torch."""
