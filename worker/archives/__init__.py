"""What archives hold: proving sets complete, listing, previewing, hashing.

Knows bytes, not Telegram and not PostgreSQL; imports ``domain`` and ``errors`` only. Names, grouping and
split plans are pure and live in ``domain``.

Foreign bytes are parsed in a child process and nowhere else:

- ``reader`` says how bytes are had, so that a part may lie on disk or on a server;
- ``nursery`` is what the fleet calls; ``conversation`` talks to one child over ``wire`` frames;
- ``nursery_process`` is the preloaded process that children are forked from, ``child`` the one job of a
  child and the limits that the kernel keeps on it, ``landlock`` among them;
- ``examine`` looks at one set there: ``*_proof`` judge whether it is whole and what speaks for each part,
  ``*_listing`` send members to a ``sink``, ``*_check`` compare bytes with checksums and with each other,
  ``pictures`` and ``thumbnail`` make a preview;
- ``rar_unpacker`` is the one foreign program, used where it is installed.

A child asks for byte ranges over its one channel, so listing gigabytes takes kilobytes, and nothing is
ever concatenated or unpacked on disk. Whatever the bytes do, the answer is a listing with marks; only a
reader that fails is an error.
"""
