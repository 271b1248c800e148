"""Sending a set's parts to the destination."""
