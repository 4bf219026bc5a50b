"""The MNIST example, on small files of its format: it reads them, trains on them, and says what was tuned."""

import gzip
import struct

import numpy as np
import pytest
import torch

from examples import mnist

SIZE = 12


def write(folder, images, labels, part, packed):
    for name, content in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
        header = struct.pack(f">HBB{content.ndim}I", 0, 8, content.ndim, *content.shape)
        written = header + content.astype(np.uint8).tobytes()
        (folder / f"{name}{'.gz' if packed else ''}").write_bytes(gzip.compress(written) if packed else written)


def drawn(count, generator):
    """Bars that lie or stand, somewhere, in noise: two classes."""
    labels = np.arange(count) % 2
    images = generator.integers(0, 40, (count, SIZE, SIZE))
    for image, label, place in zip(images, labels, generator.integers(2, SIZE - 2, count), strict=True):
        image[(place, slice(None)) if label else (slice(None), place)] = 255
    return images, labels


@pytest.fixture(scope="module", params=[True, False], ids=["gzipped", "plain"])
def folder(request, tmp_path_factory):
    where, generator = tmp_path_factory.mktemp("idx"), np.random.default_rng(3)
    write(where, *drawn(600, generator), "train", request.param)
    write(where, *drawn(200, generator), "t10k", request.param)
    return where


@pytest.fixture
def _short(monkeypatch):
    chosen = mnist.Settings(batch=200, steps=30, norm=0.5, rate=0.5, average=0.8)
    monkeypatch.setattr(mnist, "SETTINGS", {kind: {8.0: chosen} for kind in mnist.SETTINGS})


def test_files_are_read_as_they_were_written(folder):
    images, labels = drawn(600, np.random.default_rng(3))
    read = mnist.read(folder)
    assert torch.equal(read.train[:, 0], torch.from_numpy(images).float() / 255)
    assert torch.equal(read.train_labels, torch.from_numpy(labels))
    assert read.test.shape == (200, 1, SIZE, SIZE)


@pytest.mark.parametrize("content", [b"", b"\0\0\x09\1\0\0\0\0"], ids=["nothing there", "other numbers"])
def test_other_files_are_refused(tmp_path, content):
    if content:
        (tmp_path / "train-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(SystemExit, match="train-images"):
        mnist.read(tmp_path)


@pytest.mark.usefixtures("_short")
def test_bars_are_told_apart_by_their_features(folder, capsys):
    (found,) = mnist.main(folder, epsilon=8.0, kind="scattering", classes=2)
    said = capsys.readouterr().out
    assert found > 0.8
    assert "tuned, outside of ε: Settings(batch=200, steps=30" in said


def test_each_tuned_setting_has_a_plan():
    for kinds in mnist.SETTINGS.values():
        for epsilon, chosen in kinds.items():
            made = mnist.plan(
                epsilon=epsilon,
                delta=mnist.DELTA,
                n=60_000,
                batch=chosen.batch,
                steps=chosen.steps,
                max_grad_norm=chosen.norm,
            )
            assert made.epsilon().upper <= epsilon


def test_wavelets_see_no_brightness_and_their_own_angle():
    for scale in (0, 1):
        filters = mnist.wavelets(scale)
        assert torch.all(filters.sum((2, 3)).abs() < 1e-6)
    stripes = torch.cos(0.75 * torch.pi * torch.arange(32.0)).expand(1, 1, 32, 32)  # they change along x: angle 0
    answers = mnist._modulus(stripes, mnist.wavelets(0), 1)[0].mean((1, 2))
    assert answers.argmax() == 0
    assert answers[0] > 5 * answers[mnist.ANGLES // 2]


def test_features_are_of_one_image_and_hardly_move_with_it():
    images = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    together = mnist.features(images, "scattering")
    assert together.shape == (3, 81 * 49)
    torch.testing.assert_close(mnist.features(images[1:2], "scattering"), together[1:2])
    bar = torch.zeros(1, 1, 28, 28)
    bar[..., 8:20, 13:15] = 1
    moved = bar.roll(1, 3)
    seen = (mnist.scattering(moved) - mnist.scattering(bar)).norm() / mnist.scattering(bar).norm()
    assert seen < 0.5 * (moved - bar).norm() / bar.norm()
