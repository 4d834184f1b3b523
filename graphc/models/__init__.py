"""Model files: their entries, states and programs, written by export and run without Python code of the model."""
