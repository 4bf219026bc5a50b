"""sitr: publish what you learn from sensitive data without exposing anyone in it.

Today the package holds the accountant, `sitr.accounting`, and the command `sitr`. Importing `sitr` itself is cheap: the
rooms are imported by name.

Messages go to ``logging.getLogger("sitr")``, which is silent until the program that uses sitr asks for them.
"""

import logging

__all__ = ["__version__"]

__version__ = "0.1.0"

logging.getLogger("sitr").addHandler(logging.NullHandler())
