"""What archives hold: proving sets complete, listing, previewing, hashing.

Knows bytes, not Telegram and not PostgreSQL; imports ``domain``, ``errors`` and ``log`` only. Names, grouping
and split plans are pure and live in ``domain``.

Foreign bytes are parsed in a child process and nowhere else:

- ``reader`` says how bytes are had, so that a part may lie on disk or on a server;
- ``nursery`` is what the fleet calls; ``conversation`` talks to one child over ``wire`` frames;
- ``nursery_process`` is the preloaded process that children are forked from, ``child`` the one job of a
  child; it has no terminal, and what it says goes through ``child_words`` into the log;
- ``confinement`` gives up every right that is not needed, by ``landlock`` (files), ``call_filter`` (system
  calls), limits and capabilities;
- ``examine`` looks at one set there: ``*_proof`` judge whether it is whole and what speaks for each part,
  ``*_listing`` send members to a ``sink``, ``*_check`` compare bytes with checksums and with each other,
  ``pictures`` and ``thumbnail`` make a preview;
- ``rar_opener`` opens packed members of a RAR that is ``rar_on_disk``: ``rarfile`` drives the one foreign
  program that ``rar_tool`` has found, in a process as confined as a parser.

A child asks for byte ranges over its one channel, so listing gigabytes takes kilobytes, and nothing is
ever concatenated or unpacked on disk. Whatever the bytes do, the answer is a listing with marks; only a
reader that fails is an error.
"""
