"""The proof of work in the key exchange: two primes of which the server has told the product.

The product comes from the network, in the clear. A genuine one has at most eight bytes and two factors of
about the same size, which are found in some ten thousand steps; for anything else the steps run out.
"""

from __future__ import annotations

import math

LONGEST = 8
_LARGEST_FACTOR = 1 << 32
_STEPS = 1 << 19
# How many differences are multiplied before they are compared with the product: a division costs most.
_TOGETHER = 128


def factors(product: int) -> tuple[int, int] | None:
    """Both factors, the smaller one first; None if there are none such."""
    if product < 15 or product % 2 == 0 or product.bit_length() > 8 * LONGEST:
        return None
    left = _STEPS
    for constant in (1, 3, 5, 7):
        found, left = _rho(product, constant, left)
        if 1 < found < product:
            small, large = sorted((found, product // found))
            return (small, large) if large < _LARGEST_FACTOR else None
        if left <= 0:
            return None
    return None


def _rho(product: int, constant: int, left: int) -> tuple[int, int]:
    """Pollard's rho as Brent walks it: what divides ``product``, and how many steps are left."""
    fast, run = 2, 1
    while left > 0:
        slow, done = fast, 0
        for _ in range(run):
            fast = (fast * fast + constant) % product
        while done < run:
            start, multiplied = fast, 1
            for _ in range(min(_TOGETHER, run - done)):
                fast = (fast * fast + constant) % product
                multiplied = multiplied * abs(slow - fast) % product
            if (found := math.gcd(multiplied, product)) > 1:
                return (found if found < product else _one_by_one(product, constant, slow, start)), left
            done += _TOGETHER
        left -= 2 * run
        run *= 2
    return 1, 0


def _one_by_one(product: int, constant: int, slow: int, fast: int) -> int:
    """The first divisor among the differences that were multiplied."""
    for _ in range(_TOGETHER):
        fast = (fast * fast + constant) % product
        if (found := math.gcd(abs(slow - fast), product)) > 1:
            return found
    return 1
