"""Query: what is asked, what it will cost and how wrong it will be, and the answer."""
