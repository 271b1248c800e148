"""Flow control in four small parts, each usable alone.

- ``lanes``: locks over several keys, taken in order of arrival.
- ``runner`` (with ``handling``): bounded work with backpressure, timeouts that cancel, a graceful stop.
- ``outbox`` (with ``outbox_queue``, ``outbox_answer``, ``outbox_lane``, ``outbox_ops``): every visible write,
  queued, paced and retried, with one outcome each; ``progress`` is a message that follows some work.
- ``governor`` (with ``turnstile``, ``limits``, ``pacing``, ``flood``): permission before every call, shared
  by all processes. ``parts`` gives it to file parts without a round trip for each; ``keeper`` and
  ``activity`` keep the record; ``gap`` is between pages and channels.

One layer retries a call: the governor for reads, the outbox for writes. What is needed of a database or of
Telegram is stated as a Protocol (``governor_state.GovernorStore``, ``outbox_lane.Transport``,
``handling.Source``); clock, sleep and chance are passed in. Nothing beside or above this package is imported.
"""
