"""Bytes on a socket: framing, the key exchange, encrypted envelopes. Knows no accounts and no channels."""
