"""What becomes of answers: file parts are compared with the server's hashes, then those who wait are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.cipher.range_hashes import sha256_each
from worker.errors import DiskTroubleError, NotBeforeError, RetryableError
from worker.telegram.part_calls import Unverified

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker.telegram.line import Answered
    from worker.telegram.route import Route


def verified(answers: Sequence[Answered]) -> Iterator[Answered]:
    """The same answers in the same order: those with bytes are handed on, or have become an error."""
    pieces = [
        result.call.ranges(result.data) if isinstance(result, Unverified) else [] for _, result, _ in answers
    ]
    digests = iter(sha256_each([piece for each in pieces for piece in each]))
    for (request, result, error), own in zip(answers, pieces, strict=True):
        if not isinstance(result, Unverified):
            yield request, result, error
            continue
        try:
            yield request, result.call.settle(result.data, [next(digests) for _ in own]), None
        except Exception as refused:  # noqa: BLE001 - whoever waits for these bytes is told, whatever it is
            yield request, None, refused


def learned(route: Route, answered: list[Answered]) -> list[Answered]:
    """What to tell those who wait, once the route has learned from what came over it.

    A flood wait stops what has not left yet, too.
    """
    # A packet that was opened is the server's, and an answer proves that the route works.
    route.proven()
    if answered:
        route.streak.ended()
    told = list(answered)
    for refused, _, error in answered:
        is_flood = isinstance(error, NotBeforeError) and not isinstance(error, DiskTroubleError)
        if is_flood and "PREMIUM" not in str(error):
            held = RetryableError(f"{refused.call.method}: held back by a flood wait")
            told += [(each, None, held) for each in route.take_back(refused.call.method)]
    return told


def resolve(answered: list[Answered]) -> None:
    """Give those who wait what came for them, in the loop that they wait in."""
    for request, result, error in answered:
        if request.answer.done():
            continue
        if error is not None:
            request.answer.set_exception(error)
        else:
            request.answer.set_result(result)
