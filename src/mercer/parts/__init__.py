"""Machines over rows in parts that stay where they are: in memory, on disk, on other computers."""
