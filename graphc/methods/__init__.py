"""Floor 7: the methods of tensors, one file per family; ``Tensor`` inherits from all of them."""
