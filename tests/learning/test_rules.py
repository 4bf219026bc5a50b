"""Every rule, and the models people write, against the per-sample loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tests.learning.models import (
    GPT,
    Attention,
    Bag,
    BagByHand,
    Case,
    Cells,
    HFConv1D,
    LoRA,
    Recurrent,
    Residual,
    Reused,
    Scaled,
    Shared,
    ViT,
    classes,
    clipped,
    conv,
    distance,
    largest_norm,
    mnist_cnn,
    next_words,
    numbers,
    words,
)

CASES: dict[str, Callable[[], Case]] = {
    "mnist_cnn": lambda: (mnist_cnn(), (numbers(1, 28, 28),), classes),
    "mlp_inplace": lambda: (
        nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 4)),
        (numbers(6),),
        classes,
    ),
    "mlp_inplace_at_positions": lambda: (
        nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 4), nn.ReLU(inplace=True), nn.Flatten()),
        (numbers(3, 6),),
        classes,
    ),
    "gpt": lambda: (GPT(), (words(11, 6),), next_words),
    "gpt_as_many_positions_as_people": lambda: (GPT(time=5), (words(11, 5),), next_words),
    "gpt_tied": lambda: (GPT(tied=True), (words(11, 6),), next_words),
    "gpt_row_of_positions": lambda: (GPT(positions="row"), (words(11, 6),), next_words),
    "gpt_expanded_positions": lambda: (GPT(positions="expanded"), (words(11, 6),), next_words),
    "gpt_long_tied": lambda: (GPT(tied=True, time=24, width=16), (words(11, 24),), next_words),
    "vit": lambda: (ViT(), (numbers(3, 8, 8),), classes),
    "resnet": lambda: (
        nn.Sequential(Residual(2, 4, 1), Residual(4, 8, 2), nn.Flatten(), nn.Linear(128, 4)),
        (numbers(2, 8, 8),),
        classes,
    ),
    "lstm": lambda: (Recurrent("LSTM"), (words(9, 7),), classes),
    "lstm_two_ways": lambda: (Recurrent("LSTM", num_layers=2, bidirectional=True), (words(9, 7),), classes),
    "lstm_time_first": lambda: (Recurrent("LSTM", batch_first=False), (words(9, 7),), classes),
    "gru": lambda: (Recurrent("GRU", num_layers=2), (words(9, 4),), classes),
    "gru_no_bias": lambda: (Recurrent("GRU", bias=False), (words(9, 4),), classes),
    "rnn": lambda: (Recurrent("RNN"), (words(9, 4),), classes),
    "rnn_relu": lambda: (Recurrent("RNN", nonlinearity="relu"), (words(9, 4),), classes),
    "lstm_cell": lambda: (Cells("LSTMCell"), (numbers(4, 3),), classes),
    "gru_cell": lambda: (Cells("GRUCell"), (numbers(4, 3),), classes),
    "rnn_cell": lambda: (Cells("RNNCell"), (numbers(4, 3),), classes),
    "attention": lambda: (Attention(batch_first=True), (numbers(6, 8),), classes),
    "attention_time_first": lambda: (Attention(batch_first=False), (numbers(6, 8),), classes),
    "attention_cross": lambda: (Attention(batch_first=True, cross=True), (numbers(6, 8),), classes),
    "attention_weights": lambda: (Attention(batch_first=False, cross=True, weights=True), (numbers(6, 8),), classes),
    "encoder_layer": lambda: (
        nn.Sequential(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Flatten(), nn.Linear(48, 4)
        ),
        (numbers(6, 8),),
        classes,
    ),
    "lora": lambda: (LoRA(merged=False), (numbers(6),), classes),
    "lora_merged": lambda: (LoRA(merged=True), (numbers(6),), classes),
    "hf_conv1d": lambda: (HFConv1D(), (numbers(3, 6),), classes),
    "scaled": lambda: (Scaled(), (numbers(6),), classes),
    "reused": lambda: (Reused(), (numbers(6),), classes),
    "linear_4d": lambda: (
        nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Flatten(), nn.Linear(96, 4)),
        (numbers(2, 3, 4, 3),),
        classes,
    ),
    "bag_sum": lambda: (Bag("sum"), (words(3, 8),), classes),
    "bag_mean": lambda: (Bag("mean"), (words(3, 8),), classes),
    "bag_padded": lambda: (Bag("mean", padding=0), (words(3, 8),), classes),
    "bag_padded_at_the_end": lambda: (BagByHand(), (words(7, 8),), classes),
    "bag_weighted": lambda: (Bag("sum", weighted=True), (words(3, 8),), classes),
    "embedding_padded": lambda: (
        nn.Sequential(nn.Embedding(4, 3, padding_idx=1), nn.Flatten(), nn.Linear(12, 4)),
        (words(4, 4),),
        classes,
    ),
    "weight_norm": lambda: (
        nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 4))),
        (numbers(6),),
        classes,
    ),
}

for mode in ("zeros", "circular", "reflect", "replicate"):
    CASES[f"conv2d_{mode}"] = lambda mode=mode: (conv(2, padding=1, padding_mode=mode), (numbers(2, 6, 6),), classes)
for dims in (1, 2, 3):
    CASES[f"conv{dims}d_same"] = lambda dims=dims: (conv(dims, padding="same"), (numbers(2, *[5] * dims),), classes)
    CASES[f"conv{dims}d_dilated"] = lambda dims=dims: (
        conv(dims, dilation=2, stride=2, padding=1),
        (numbers(2, *[7] * dims),),
        classes,
    )
    CASES[f"conv{dims}d_groups"] = lambda dims=dims: (
        conv(dims, groups=2, bias=False),
        (numbers(2, *[5] * dims),),
        classes,
    )
    CASES[f"conv{dims}d_transposed_wide"] = lambda dims=dims: (  # more windows than positions
        nn.Sequential(
            getattr(nn, f"ConvTranspose{dims}d")(2, 4, 3, dilation=3, output_padding=2),
            nn.Tanh(),
            nn.Flatten(),
            nn.LazyLinear(4),
        ),
        (numbers(2, *[3] * dims),),
        classes,
    )
    CASES[f"conv{dims}d_transposed"] = lambda dims=dims: (
        nn.Sequential(
            getattr(nn, f"ConvTranspose{dims}d")(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2),
            nn.Tanh(),
            nn.Flatten(),
            nn.LazyLinear(4),
        ),
        (numbers(2, *[3] * dims),),
        classes,
    )
for name, norm in {
    "layer_norm": lambda: nn.LayerNorm((4, 6)),
    "layer_norm_no_bias": lambda: nn.LayerNorm(6, bias=False),
    "layer_norm_plain": lambda: nn.LayerNorm(6, elementwise_affine=False),
    "group_norm": lambda: nn.GroupNorm(2, 4),
    "instance_norm": lambda: nn.InstanceNorm1d(4, affine=True),
    "rms_norm": lambda: nn.RMSNorm(6),
}.items():
    CASES[name] = lambda norm=norm: (
        nn.Sequential(nn.Linear(6, 6), norm(), nn.Tanh(), nn.Flatten(), nn.Linear(24, 4)),
        (numbers(4, 6),),
        classes,
    )
for name, run in {
    "beside_another": lambda m, x: torch.tanh(m.layer(x + m.place + m.kind)) + m.place,
    "beside_another_twice": lambda m, x: torch.tanh(m.layer(x + m.place + m.kind)) + m.kind + m.place,
    "thrice": lambda m, x: x + m.place + m.place + m.place + m.kind,
    "beside_a_layer": lambda m, x: torch.tanh(m.layer(x) + m.place) + m.place,
    "expanded": lambda m, x: torch.tanh(x + m.place.expand(len(x), -1, -1) + m.kind.expand(len(x), -1, -1)) + m.place,
    "one_number": lambda m, x: x + m.place[:1, :1] + m.kind[:1, :1] + m.place + m.place[:1],
    "in_overlapping_gradients": lambda m, x: (x + m.place) + torch.tanh(x * m.place),
}.items():
    CASES[f"shared_{name}"] = lambda run=run: (Shared(run), (numbers(4, 16),), classes)


def built(name: str) -> Case:
    torch.manual_seed(7)
    model, inputs, losses = CASES[name]()
    with torch.no_grad():
        model(*inputs)  # lazy layers take their size
    return model, inputs, losses


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "float"])
def test_the_clipped_sum_is_that_of_the_loop(name: str, exact: bool) -> None:
    """Including T2 (bags), T3 (padding modes), T16 (no bias), T17 (4-D), T18 (positions), T19 (padding), T21 (bare)."""
    case = built(name)
    assert distance(case, exact_sums=exact) < 1e-5
    nobody = 1.2 * max(largest_norm(case), 1e-3)
    assert distance(case, exact_sums=exact, max_grad_norm=nobody) < 1e-5


@pytest.mark.parametrize("name", CASES)
def test_one_person_is_treated_like_many(name: str) -> None:
    model, inputs, losses = built(name)
    whole = clipped(model, inputs, losses, exact_sums=False).gradients()
    total = {key: torch.zeros_like(value) for key, value in whole.items()}
    everybody = losses(model(*inputs))
    for person in range(len(inputs[0])):
        alone = clipped(
            model,
            tuple(x[person : person + 1] for x in inputs),
            lambda out, person=person: _own(losses, out, person),
            exact_sums=False,
        )
        for key, value in alone.gradients().items():
            total[key] += value
    assert everybody.shape == (len(inputs[0]),)
    for key in whole:
        torch.testing.assert_close(total[key], whole[key], rtol=1e-4, atol=1e-5)


def _own(losses: Callable[[torch.Tensor], torch.Tensor], out: torch.Tensor, person: int) -> torch.Tensor:
    """The loss of one row at its place in the batch, since targets go by place."""
    return losses(out.repeat(person + 1, *[1] * (out.dim() - 1)))[person:]


@pytest.mark.parametrize(
    "table",
    [nn.Embedding(5, 3, max_norm=1.0), nn.Embedding(5, 3, scale_grad_by_freq=True), nn.EmbeddingBag(5, 3, mode="max")],
    ids=["max_norm", "by_frequency", "max"],
)
def test_tables_that_couple_people_are_refused(table: nn.Module) -> None:
    from sitr.errors import NotAllowed

    with pytest.raises(NotAllowed):
        clipped(table, (words(5, 4),), lambda out: out.flatten(1).sum(1))
