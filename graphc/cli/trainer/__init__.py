"""Training of a model file's entry on files of data: sources, sample order, checkpoints, measures, and the loop."""
