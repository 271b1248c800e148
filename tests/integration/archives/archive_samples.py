"""Archives of every format and scheme.

Python libraries and ``rar_writer`` make some when a test asks for them; the work of the real programs is kept
(:mod:`kept_samples`), so that a machine without them tests the same.
"""

import rar_samples
import rar_tool_samples
import sevenzip_samples
import tar_samples
import zip_samples
import zip_tool_samples
from sample_registry import MAKERS, TREE, build, make_anew

spanned_zip = zip_samples.spanned_zip
zip_bytes = zip_samples.zip_bytes
zstd = tar_samples.zstd

__all__ = [
    "MAKERS", "TREE", "build", "make_anew", "rar_samples", "rar_tool_samples", "sevenzip_samples", "spanned_zip",
    "zip_bytes", "zip_tool_samples", "zstd",
]  # fmt: skip
