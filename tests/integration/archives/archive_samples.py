"""Archives of every format and scheme, made when a test asks for them.

Samples marked with a tool come from the real program; the rest come from Python libraries and from
``rar_writer``, so that every format is covered on a machine without those programs.
"""

import rar_samples
import sevenzip_samples
import tar_samples
import zip_samples
from sample_registry import MAKERS, TREE, build

spanned_zip = zip_samples.spanned_zip
zip_bytes = zip_samples.zip_bytes
zstd = tar_samples.zstd

__all__ = ["MAKERS", "TREE", "build", "rar_samples", "sevenzip_samples", "spanned_zip", "zip_bytes", "zstd"]
