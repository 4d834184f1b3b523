"""Training an entry of a model file from files of data: sources, their order, checkpoints, measures, and the loop."""
