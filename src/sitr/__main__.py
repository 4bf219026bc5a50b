"""`python -m sitr` is the command `sitr`."""

from .cli import main

main(prog_name="sitr")
