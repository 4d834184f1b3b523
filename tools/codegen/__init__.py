"""Tools about emitted code: other processors under emulation, polynomial coefficients, register blocks."""
