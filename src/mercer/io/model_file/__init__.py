"""Model files: save, load, and reduce models."""
