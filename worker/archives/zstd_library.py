"""zstd as Python has it from 3.14 on; before, the same interface from a package."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd"]
