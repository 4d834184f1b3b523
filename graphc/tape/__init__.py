"""What tensors carry for derivatives: nodes, modes, tangents, and handles of hooks."""
