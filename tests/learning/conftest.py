"""Tests of the room of learning need PyTorch, which `make test` installs; without it none is collected."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
