"""Reading a source channel upward from its cursor."""
