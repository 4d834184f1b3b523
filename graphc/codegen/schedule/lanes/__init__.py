"""Which loops go across the lanes of vectors."""
