"""Files of their owner alone, names that last, and what is open."""

import os
import stat

import pytest

from sitr.ledger.disk import open_files, owner_only, sync_folder


def inode(path):
    about = os.stat(path)
    return about.st_dev, about.st_ino


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_file_that_is_made_is_its_owners_alone_whatever_others_are_given_usually(tmp_path, mask):
    before = os.umask(mask)
    try:
        with open(tmp_path / "made", "xb", opener=owner_only) as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o600


def test_a_file_that_is_there_keeps_its_rights(tmp_path):
    path = tmp_path / "there"
    path.touch(mode=0o640)
    with open(path, "ab", opener=owner_only):
        pass
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_is_open_is_known_however_it_was_opened_and_only_while_it_is(tmp_path):
    path = tmp_path / "book"
    path.touch()
    assert inode(path) not in open_files()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        again = os.dup(descriptor)
        os.close(descriptor)
        assert inode(path) in open_files()
        os.unlink(path)  # it is open still
        assert (os.fstat(again).st_dev, os.fstat(again).st_ino) in open_files()
    finally:
        os.close(again)


def test_a_folder_is_synced_and_left_closed(tmp_path):
    before = open_files()
    sync_folder(tmp_path)
    assert inode(tmp_path) not in open_files() - before
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "none")
