"""What is proven of machine code: what it reaches, the stack it takes, the most instructions that it runs."""
