"""Models, training loops and operator calls that are measured, each written once for any framework."""
