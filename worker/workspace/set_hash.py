"""SHA-256 of a set as its bytes come by: one over all of them in order, one per part.

Every part but the first is hashed twice, for the content and for itself. The two hashes run side by side:
with two cores free they need little more time than one of them, with one core up to twice that.
"""

from __future__ import annotations

import hashlib
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

# Less than this is hashed sooner than another thread is told of it.
_WORTH_SHARING = 64 * 1024
# The other thread is given so much less as it takes to wake it: then the caller need not be woken, too.
_AHEAD = 24 * 1024


class SetHash:
    """Takes the bytes of a set in order; say :meth:`end_part` after each part.

    Any thread may call it, one at a time. Leaving its ``with`` block ends its own thread.
    """

    def __init__(self) -> None:
        self._content = hashlib.sha256()
        # Up to the end of the first part both hashes are over the same bytes.
        self._part: hashlib._Hash | None = None
        self._beside: _Beside | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the thread."""
        if self._beside is not None:
            self._beside.close()
            self._beside = None

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes; they may change as soon as this returns."""
        if self._part is None:
            self._content.update(data)
        elif len(data) < _WORTH_SHARING:
            self._content.update(data)
            self._part.update(data)
        else:
            if self._beside is None:
                self._beside = _Beside(self._content)
            self._content.update(data[:_AHEAD])
            self._beside.begin(data[_AHEAD:])
            try:
                self._part.update(data)
            finally:
                self._beside.wait()

    def end_part(self) -> bytes:
        """The hash of the part that ends here."""
        digest = (self._part or self._content).digest()
        self._part = hashlib.sha256()
        return digest

    def content(self) -> bytes:
        """The hash of everything so far."""
        return self._content.digest()


class _Beside:
    """A thread that keeps one hash up to date while the caller works on another."""

    def __init__(self, digest: hashlib._Hash) -> None:
        self._digest = digest
        # A pool of one thread costs the caller's core more for every range.
        self._given: SimpleQueue[bytes | memoryview | None] = SimpleQueue()
        self._taken: SimpleQueue[BaseException | None] = SimpleQueue()
        threading.Thread(target=self._run, name="set hash", daemon=True).start()

    def _run(self) -> None:
        while (data := self._given.get()) is not None:
            failure: BaseException | None = None
            try:
                self._digest.update(data)
            except BaseException as error:  # noqa: BLE001  # raised where it is waited for
                failure = error
            # A view that is kept would keep its buffer from being resized or reused.
            del data
            self._taken.put(failure)

    def begin(self, data: bytes | memoryview) -> None:
        self._given.put(data)

    def wait(self) -> None:
        failure = self._taken.get()
        if failure is not None:
            raise failure

    def close(self) -> None:
        self._given.put(None)
