"""Reader of files that ``torch.export.save`` writes. Does not import torch, and executes nothing in a file."""
