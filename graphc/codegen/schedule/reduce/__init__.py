"""Long reductions: split into partial sums, or summed by columns."""
