"""The source of bits: the system's own, never kept, never seeded unless a test says so."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import stats

from sitr.errors import InvalidArgument
from sitr.mechanisms.randomness import EXPANDED, SYSTEM, Seeded, source_of, words
from tests.mechanisms.statistics import ALARM, chi_square


def test_without_a_seed_bits_are_the_systems(monkeypatch):
    asked = []
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or b"\x07" * count)
    assert source_of(None) is SYSTEM
    assert source_of(None).private
    assert words(source_of(None), 16, 3).tolist() == [0x0707] * 3
    assert asked == [6]  # exactly what is used: nothing is kept that a fork could share


def test_a_seeded_stream_repeats_and_says_so():
    first, second = source_of(3), source_of(3)
    assert not first.private
    assert first.bytes(100) == second.bytes(100)
    assert first.bytes(100) != Seeded(4).bytes(100)


@pytest.mark.parametrize("seed", [True, 1.5, "3", -1, 2**63, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidArgument, match="unsafe_seed"):
        Seeded(seed)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_words_have_their_width_and_count(bits):
    found = words(SYSTEM, bits, 1000)
    assert found.dtype == np.dtype(f"u{bits // 8}")
    assert found.size == 1000
    assert words(SYSTEM, bits, 0).size == 0


@pytest.mark.statistical
@pytest.mark.parametrize("source", [SYSTEM, EXPANDED, Seeded(1)])
def test_bytes_are_uniform(source):
    """Whether they are unpredictable no test can say; a slip in reading them would show here."""
    found = words(source, 8, 1_000_000)
    assert chi_square(np.bincount(found, minlength=256), np.full(256, 1 / 256)) > ALARM
    assert stats.binomtest(int(np.unpackbits(found).sum()), 8_000_000, 0.5).pvalue > ALARM


def test_threads_do_not_share_bytes():
    """Eight threads, a hundred words of 64 bits each: two are equal with probability under 2e-14."""
    found, lock = [], threading.Lock()

    def take():
        for _ in range(100):
            word = SYSTEM.bytes(8)
            with lock:
                found.append(word)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 800


def test_expanded_bits_are_new_in_every_fork():
    """The state that a process holds is not that of its children: each seeds itself anew."""
    code = """
import os
from sitr.mechanisms.randomness import EXPANDED
EXPANDED.bytes(64)
for _ in range(20):
    if os.fork() == 0:
        os.write(1, EXPANDED.bytes(32).hex().encode() + b"\\n")
        os._exit(0)
    os.wait()
os.write(1, EXPANDED.bytes(32).hex().encode() + b"\\n")
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert len(found) == len(set(found)) == 21
