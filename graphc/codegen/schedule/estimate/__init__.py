"""Facts about scheduled kernels, and estimates of their cost."""
