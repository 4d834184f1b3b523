"""The schedule for GPUs: which threads run what, in which order, and what they share."""
