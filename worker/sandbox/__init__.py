"""A loopback Telegram: a real MTProto server on 127.0.0.1 on which genuine clients run unchanged.

It enforces the rules of the real server, keeps a durable ledger of what happened, and injects faults by rule.
It imports the TL classes of the client library, and nothing of the worker but errors and log.

``wire``      bytes on a socket: framing, key exchange, encrypted envelopes
``ledger``    what is remembered: SQLite and blob files in one state directory
``handlers``  one module per namespace of the API: a TL query in, a TL answer out
``layers``    what older clients call differently
``admin``     the door for tests; ``admin_client`` is the key to it

A packet goes ``connection`` → ``inbound`` → ``dispatch`` → a handler, its answer back through ``connection``.
``session`` numbers messages, ``presence`` knows who is connected, ``faults`` says what shall go wrong,
``shaping`` how slowly everything passes; ``render`` shows rows as one account sees them, ``news`` tells
others.
"""

import logging

# Without tgcrypto the library warns of a slow cipher at its import; the server uses ``worker.cipher``.
logging.getLogger("pyrogram.crypto.aes").setLevel(logging.ERROR)
