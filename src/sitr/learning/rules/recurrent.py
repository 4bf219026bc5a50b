"""LSTM, GRU and RNN as they are, step by step, so that their matrices have the rule of linear layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import NotAllowed
from ..watch import Function

Cell = Callable[[Tensor, Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]


def _lstm_cell(given: Tensor, recalled: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    enter, forget, fresh, leave = (given + recalled).chunk(4, dim=-1)
    memory = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * torch.tanh(fresh)
    return torch.sigmoid(leave) * torch.tanh(memory), memory


def _gru_cell(given: Tensor, recalled: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    given_r, given_z, given_n = given.chunk(3, dim=-1)
    recalled_r, recalled_z, recalled_n = recalled.chunk(3, dim=-1)
    keep = torch.sigmoid(given_z + recalled_z)
    fresh = torch.tanh(given_n + torch.sigmoid(given_r + recalled_r) * recalled_n)
    return ((1 - keep) * fresh + keep * state[0],)


def _tanh_cell(given: Tensor, recalled: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (torch.tanh(given + recalled),)


def _relu_cell(given: Tensor, recalled: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (torch.relu(given + recalled),)


def _unrolled(cell: Cell) -> Callable[..., tuple[Tensor, ...]]:
    def run(
        x: Tensor,
        state: Any,
        weights: Any,
        has_biases: Any,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        if isinstance(has_biases, (list, tuple)):
            raise NotAllowed(
                "packed sequences have no rule.", do="pass padded sequences, and mask what comes after the end."
            )
        states = tuple(state) if isinstance(state, (tuple, list)) else (state,)
        directions, step = 2 if bidirectional else 1, 4 if has_biases else 2
        if len(weights) != step * num_layers * directions:
            raise NotAllowed("an LSTM with proj_size has no rule.", do="put a linear layer after it.")
        x = x.transpose(0, 1) if batch_first else x
        ends: list[tuple[Tensor, ...]] = []
        for layer in range(num_layers):
            outs = []
            for direction in range(directions):
                place = layer * directions + direction
                own = weights[place * step : (place + 1) * step]
                start = tuple(s[place] for s in states)
                out, end = _one_way(cell, x, start, own, backwards=direction == 1)
                outs.append(out)
                ends.append(end)
            x = torch.cat(outs, dim=-1) if directions == 2 else outs[0]
            if dropout and train and layer < num_layers - 1:
                x = F.dropout(x, dropout)
        last = tuple(torch.stack([end[k] for end in ends]) for k in range(len(states)))
        return (x.transpose(0, 1) if batch_first else x, *last)

    return run


def _one_way(
    cell: Cell, x: Tensor, state: tuple[Tensor, ...], weights: Any, *, backwards: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    from_input, from_state, *biases = weights
    bias_input, bias_state = biases or (None, None)
    given = F.linear(x, from_input, bias_input)
    outs: list[Tensor] = []
    times = range(len(x))
    for time in reversed(times) if backwards else times:
        state = cell(given[time], F.linear(state[0], from_state, bias_state), state)
        outs.append(state[0])
    return torch.stack(outs[::-1] if backwards else outs), state


def _single(cell: Cell) -> Callable[..., Any]:
    """One step, as nn.LSTMCell and its kin take it."""

    def run(x: Tensor, state: Any, from_input: Tensor, from_state: Tensor, *biases: Tensor | None) -> Any:
        states = tuple(state) if isinstance(state, (tuple, list)) else (state,)
        bias_input, bias_state = biases or (None, None)
        found = cell(F.linear(x, from_input, bias_input), F.linear(states[0], from_state, bias_state), states)
        return found if isinstance(state, (tuple, list)) else found[0]

    return run


COMPOSITES: dict[Function, Function] = {
    torch.lstm_cell: _single(_lstm_cell),
    torch.gru_cell: _single(_gru_cell),
    torch.rnn_tanh_cell: _single(_tanh_cell),
    torch.rnn_relu_cell: _single(_relu_cell),
    torch.lstm: _unrolled(_lstm_cell),
    torch.gru: _unrolled(_gru_cell),
    torch.rnn_tanh: _unrolled(_tanh_cell),
    torch.rnn_relu: _unrolled(_relu_cell),
}
