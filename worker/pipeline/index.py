"""What is inside: the second phase."""
