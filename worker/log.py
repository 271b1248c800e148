"""Structured logs with nothing secret in them."""
