"""Graph to graph: derivatives are in, kernels are not yet; one file per pass, and the pipeline that lists them."""
