"""Tables on disk, read block by block: Parquet files and folders, Arrow datasets."""

from mercer.io.blocks.open_rows import open_rows

__all__ = ["open_rows"]
