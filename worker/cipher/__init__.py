"""AES-256 in IGE mode, as fast as this machine can, for the client and for the loopback server alike.

Three ways, one interface (``ige.py``): an extension of our own on the processor's AES instructions, tgcrypto,
and OpenSSL's blocks chained in Python, which always works. Imports nothing of the worker.
"""
