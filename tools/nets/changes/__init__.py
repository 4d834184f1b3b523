"""Changes of a model, its tensors, optimizer or surroundings between two calls."""
