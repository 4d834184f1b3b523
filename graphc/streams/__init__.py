"""Streams: a model of sequences as a step with states, which takes a few samples per call."""
