"""GPU schedule: assignment of loops to threads, order of execution, shared memory."""
