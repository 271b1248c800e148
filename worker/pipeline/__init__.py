"""The way of an archive: scan, claim, fetch, digest, deduplicate, publish, record, index.

One module per step; steps never import each other, and only ``run`` knows their order.
"""
