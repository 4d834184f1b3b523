"""Target-independent transformations of loop nests."""
