"""`python -m sitr.cli` is the command `sitr`."""

from . import main

main(prog_name="sitr")
