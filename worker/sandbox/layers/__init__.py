"""Older layers: a client that was generated from an older schema is answered in the words of that schema.

``schema`` reads and writes constructors by their definition, ``older`` knows which differ and what replaced
them.
"""
