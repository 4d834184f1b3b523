"""From a graph to a plan: which nodes become one kernel, what is stored, and how images lie in memory."""
