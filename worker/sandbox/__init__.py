"""A loopback Telegram: a real MTProto server on 127.0.0.1 on which genuine clients run unchanged.

It enforces the rules of the real server, keeps a durable ledger of what happened, and injects faults by rule.
It imports the TL classes of the client library, and nothing of the worker but errors and log.

``wire``      bytes on a socket: framing, key exchange, encrypted envelopes
``ledger``    what is remembered: SQLite and blob files in one state directory
``handlers``  one module per namespace of the API: a TL query in, a TL answer out
``session``, ``connection``, ``dispatch`` join the three; ``admin`` is the door for tests.
"""
