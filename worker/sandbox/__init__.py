"""A loopback Telegram: a real MTProto server on 127.0.0.1 on which genuine clients run unchanged.

It enforces the rules of the real server, keeps a durable ledger of what happened, and injects faults by rule.
It imports the TL classes of the client library, and nothing of the worker but errors and log.
"""
