"""One size for every preview. Runs in the confined child, since pictures are foreign bytes too."""

from __future__ import annotations

import io

from PIL import Image

EDGE = 320
QUALITY = 80
MAX_PIXELS = 50_000_000
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")


def preload() -> None:
    """Load the decoders while files can still be opened."""
    Image.init()


def thumbnail(picture: bytes) -> bytes:
    """A JPEG that fits into a square of ``EDGE`` pixels; a broken picture makes Pillow raise anything."""
    with Image.open(io.BytesIO(picture), formats=FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f"the picture has {image.width} by {image.height} pixels")
        image.draft("RGB", (EDGE, EDGE))  # lets the JPEG decoder skip what would be thrown away
        small = image.convert("RGBA") if image.mode in ("P", "LA", "PA") else image
        small.thumbnail((EDGE, EDGE))
        if small.mode == "RGBA":
            ground = Image.new("RGB", small.size, "white")
            ground.paste(small, mask=small.getchannel("A"))
            small = ground
        out = io.BytesIO()
        small.convert("RGB").save(out, "JPEG", quality=QUALITY)
        return out.getvalue()
