"""``python -m mercer``: the command, where its script is not on the path."""

from mercer.cli import command

command()
