"""Models that mix people, made into ones that do not."""

from __future__ import annotations

import copy
from collections.abc import Callable

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

MOST_GROUPS = 32
FEWEST_CHANNELS = 4  # of a group: a group of one number would be normalised to nothing


def fix(model: nn.Module, *, tell: Callable[[str], object] = print) -> nn.Module:
    """Replace layers that mix people: batch normalisation by group normalisation, with the same scales and shifts.

    The model given is left as it is. Running statistics are dropped: they came from data. A model that was trained with
    batch normalisation has to be trained again, if only a little.

    Args:
        model: Any model.
        tell: Is told of each layer that was replaced.

    Returns:
        A copy with other layers where that was needed; everything else is equal.

    Privacy: none by itself; a `Clipper` refuses models that mix people (THEORY 7.3), and takes fixed ones.

    Example:
        >>> model = fix(nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16)))
        1: BatchNorm2d(16) became GroupNorm of 4 groups
    """
    fixed = copy.deepcopy(model)
    made: dict[int, nn.Module] = {}
    for name, module in list(fixed.named_modules(remove_duplicate=False)):
        if id(module) not in made:
            new, change = _replacement(module)
            if new is None:
                continue
            made[id(module)] = new
            tell(f"{name or 'the model'}: {change}")
        if not name:
            return made[id(module)]
        parent, _, last = name.rpartition(".")
        setattr(fixed.get_submodule(parent), last, made[id(module)])
    return fixed


def groups_of(channels: int) -> int:
    """Return the most groups of at least four channels each, at most 32, that divide them evenly.

    Example:
        >>> groups_of(64), groups_of(3)
        (16, 1)
    """
    fitting = (g for g in range(1, MOST_GROUPS + 1) if channels % g == 0 and channels // g >= FEWEST_CHANNELS)
    return max(fitting, default=1)


def _replacement(module: nn.Module) -> tuple[nn.Module | None, str]:
    if isinstance(module, _BatchNorm):
        groups = groups_of(module.num_features)
        new: nn.Module = nn.GroupNorm(groups, module.num_features, eps=module.eps, affine=module.affine)
        change = f"{type(module).__name__}({module.num_features}) became GroupNorm of {groups} groups"
    elif isinstance(module, _InstanceNorm) and module.track_running_stats:
        new = type(module)(module.num_features, eps=module.eps, affine=module.affine)
        change = f"{type(module).__name__}({module.num_features}) lost its running statistics"
    else:
        return None, ""
    new.weight, new.bias = module.weight, module.bias
    return new.train(module.training), change
