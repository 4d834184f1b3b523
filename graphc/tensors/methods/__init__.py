"""Methods of tensors by subject."""
