"""What the bytes hash to."""
