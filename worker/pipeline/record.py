"""The package stub: deliverable, metadata pending."""
