# mypy: disable-error-code="import-not-found"
"""Algorithms 3, 4 and 5 by hand in PyTorch, on any of the networks."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.func import grad, vmap
from torch.nn.functional import conv2d, cross_entropy, layer_norm, max_pool2d

from benchmarks.peers.networks.problem import KEY, Problem
from benchmarks.peers.problem import Array
from benchmarks.peers.systems.torch_device import array, finish, tensor

Weights = list[Any]
Loss = Callable[[Weights], Any]

_TAU = 0.01
_SAMPLES = 100
_STEPS, _PER_STEP = 10, 10
_CHUNKS: Mapping[str, int] = {"wide": 5, "convolutional": 50, "attention": 50}
"""Samples evaluated at once."""


def systems(network: str, problem: Problem) -> dict[tuple[str, str], Callable[[], object]]:
    """Returns functions that make a weight update, by algorithm and name."""
    torch.manual_seed(0)
    loss, x = _loss(network, problem), _tensors(problem)
    steps: dict[tuple[str, str], Callable[[], None]] = {
        ("sgld", "PyTorch"): lambda: _sgld(loss, x),
        ("is", "PyTorch, vmap"): lambda: _importance(loss, x, _CHUNKS[network]),
        ("is", "PyTorch, loop"): lambda: _importance_one_by_one(loss, x),
        ("hr", "PyTorch, vmap"): lambda: _heat(loss, x),
        ("hr", "PyTorch, loop"): lambda: _heat_one_by_one(loss, x),
    }
    return {name: _finished(step) for name, step in steps.items()}


def value_and_gradient(network: str, problem: Problem) -> tuple[float, list[Array]]:
    """Returns f and grad f at the first weights."""
    x = [w.requires_grad_() for w in _tensors(problem)]
    value = _loss(network, problem)(x)
    return value.item(), [array(g) for g in torch.autograd.grad(value, x)]


def _tensors(problem: Problem) -> Weights:
    return [tensor(w.copy()) for w in problem.weights]


def _finished(step: Callable[[], None]) -> Callable[[], object]:
    def update() -> None:
        step()
        finish()

    return update


def _sgld(loss: Loss, x: Weights) -> None:
    position = [x_v.clone().requires_grad_() for x_v in x]
    z = [torch.empty_like(x_v) for x_v in x]
    total = [torch.zeros_like(x_v) for x_v in x]
    for j in range(1, _SAMPLES):
        eps = 1.0 / (1000.0 + j)
        gradient = torch.autograd.grad(loss(position), position)
        with torch.no_grad():
            for x_v, p, g, z_v, t in zip(x, position, gradient, z, total, strict=True):
                t.add_(p, alpha=eps)
                drift = g + (p - x_v) / _TAU
                p.add_(drift, alpha=-eps / 2).add_(z_v.normal_(), alpha=eps**0.5)


@torch.no_grad()
def _importance(loss: Loss, x: Weights, chunk: int) -> None:
    z = [x_v.new_empty(chunk, *x_v.shape) for x_v in x]
    total, weight = [torch.zeros_like(x_v).flatten() for x_v in x], 0.0

    def loss_at(*parts: Any) -> Any:
        return loss([x_v + _TAU**0.5 * p for x_v, p in zip(x, parts, strict=True)])

    for _ in range(_SAMPLES // chunk):
        for z_v in z:
            z_v.normal_()
        w = torch.exp(-vmap(loss_at)(*z))
        weight += w.sum().item()
        for t, z_v in zip(total, z, strict=True):
            t.add_(w @ z_v.flatten(1))
    for t in total:
        t.mul_(_TAU**0.5 / weight)


@torch.no_grad()
def _importance_one_by_one(loss: Loss, x: Weights) -> None:
    z = [torch.empty_like(x_v) for x_v in x]
    total, weight = [torch.zeros_like(x_v) for x_v in x], 0.0
    for _ in range(_SAMPLES):
        moved = [
            torch.add(x_v, z_v.normal_(), alpha=_TAU**0.5) for x_v, z_v in zip(x, z, strict=True)
        ]
        w = torch.exp(-loss(moved)).item()
        weight += w
        for t, z_v in zip(total, z, strict=True):
            t.add_(z_v, alpha=w)
    for t in total:
        t.mul_(_TAU**0.5 / weight)


def _heat(loss: Loss, x: Weights) -> None:
    y = [torch.zeros_like(x_v) for x_v in x]
    z = [x_v.new_empty(_PER_STEP, *x_v.shape) for x_v in x]
    for j in range(1, _STEPS + 1):
        centre = [x_v + y_v for x_v, y_v in zip(x, y, strict=True)]

        def gradient(*parts: Any, centre: Weights = centre) -> Weights:
            return grad(loss)([c + _TAU**0.5 * p for c, p in zip(centre, parts, strict=True)])

        found = vmap(gradient)(*[z_v.normal_() for z_v in z])
        _moved(y, [g.mean(0) for g in found], j)


def _heat_one_by_one(loss: Loss, x: Weights) -> None:
    y = [torch.zeros_like(x_v) for x_v in x]
    z = [torch.empty_like(x_v) for x_v in x]
    for j in range(1, _STEPS + 1):
        total = [torch.zeros_like(x_v) for x_v in x]
        for _ in range(_PER_STEP):
            at = [
                (x_v + y_v).add_(z_v.normal_(), alpha=_TAU**0.5).requires_grad_()
                for x_v, y_v, z_v in zip(x, y, z, strict=True)
            ]
            for t, g in zip(total, torch.autograd.grad(loss(at), at), strict=True):
                t.add_(g, alpha=1.0 / _PER_STEP)
        _moved(y, total, j)


def _moved(y: Weights, gradient: Weights, j: int) -> None:
    a = 0.1 * j**-0.7
    for y_v, g in zip(y, gradient, strict=True):
        y_v.mul_(1.0 - a).add_(g, alpha=-a * _TAU)


def _loss(network: str, problem: Problem) -> Loss:
    x, labels = tensor(problem.x), tensor(problem.labels)
    if network == "convolutional":
        x = x.permute(0, 3, 1, 2).contiguous()
    logits = _NETWORKS[network]
    return lambda weights: cross_entropy(logits(weights, x), labels)


def _wide(w: Weights, x: Any) -> Any:
    hidden = torch.relu(x @ w[0] + w[1])
    return torch.relu(hidden @ w[2] + w[3]) @ w[4] + w[5]


def _convolutional(w: Weights, x: Any) -> Any:
    for kernel, bias in (w[:2], w[2:4]):
        x = max_pool2d(torch.relu(conv2d(x, kernel.permute(3, 2, 0, 1), bias)), 2)
    return x.permute(0, 2, 3, 1).flatten(1) @ w[4] + w[5]


def _attention(w: Weights, x: Any) -> Any:
    embedded = w[0][x]
    query, key, value = (
        torch.einsum("btd,dhk->bhtk", embedded, w[i]) + w[i + 1][:, None] for i in (1, 3, 5)
    )
    shares = torch.softmax(query @ key.transpose(-1, -2) / KEY**0.5, -1)
    attended = torch.einsum("bhtk,hkd->btd", shares @ value, w[7]) + w[8]
    hidden = layer_norm(embedded + attended, w[9].shape, w[9], w[10], 1e-3)
    return torch.relu(hidden @ w[11] + w[12]).mean(1) @ w[13] + w[14]


_NETWORKS: Mapping[str, Callable[[Weights, Any], Any]] = {
    "wide": _wide,
    "convolutional": _convolutional,
    "attention": _attention,
}
