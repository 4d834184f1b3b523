"""Special functions under the names of torch.special."""
