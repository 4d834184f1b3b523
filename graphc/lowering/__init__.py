"""From a plan to kernels: the loop nest of each group, scans as repeated calls."""
