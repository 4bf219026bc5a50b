"""nn.MultiheadAttention as it is, made of smaller functions whose parameters have rules."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import NotAllowed
from ..watch import Function


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Compute what F.multi_head_attention_forward does, time first, with a batch."""
    if bias_k is not None or bias_v is not None or add_zero_attn or static_k is not None or query.dim() != 3:
        raise NotAllowed(
            "this form of nn.MultiheadAttention has no rule.",
            do="leave out add_bias_kv and add_zero_attn, and pass a batch.",
        )
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, (q_proj_weight, k_proj_weight, v_proj_weight))
    q, k, v = (x.unflatten(2, (num_heads, -1)).permute(1, 2, 0, 3) for x in (q, k, v))  # batch, heads, time, channels
    mask = _mask(attn_mask, key_padding_mask, q, k, is_causal)
    dropout = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = (q / math.sqrt(q.shape[3])) @ k.transpose(2, 3)
        weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
        weights = F.dropout(weights, dropout) if dropout else weights
        mixed = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        mixed = F.scaled_dot_product_attention(q, k, v, mask, dropout)
    out = F.linear(mixed.permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias)
    return out, weights


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Any, bias: Any, apart: tuple[Any, Any, Any]
) -> tuple[Tensor, Tensor, Tensor]:
    if weight is not None and query is key and key is value:
        q, k, v = F.linear(query, weight, bias).chunk(3, dim=-1)
        return q, k, v
    weights = apart if weight is None else weight.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))
    return q, k, v


def _mask(attention: Any, padding: Any, q: Tensor, k: Tensor, causal: bool) -> Tensor | None:
    """Add up the masks, as numbers that are added to scores: batch (or 1), heads (or 1), queries, keys."""
    if causal and attention is None:
        raise NotAllowed("is_causal needs attn_mask.", do="pass attn_mask.")
    found = None
    if attention is not None:
        found = _as_scores(attention, q)
        if found.dim() == 3:
            found = found.unflatten(0, (q.shape[0], -1))
    if padding is not None:
        hidden = _as_scores(padding, q)[:, None, None, :]
        found = hidden if found is None else found + hidden
    return found


def _as_scores(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)


COMPOSITES: dict[Function, Function] = {F.multi_head_attention_forward: multi_head_attention}
