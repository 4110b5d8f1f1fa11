"""with_jax.py DATASET - JAX: batches as jax.Array, without a copy of the images on the CPU."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp

import millrace


@jax.jit
def step(weights: Any, images: jax.Array, labels: jax.Array) -> tuple[Any, jax.Array]:
    def loss_of(w: Any) -> jax.Array:
        scores = jax.nn.log_softmax(images.reshape(len(images), -1) @ w["a"] + w["b"])
        return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

    loss, gradient = jax.value_and_grad(loss_of)(weights)
    return jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradient), loss


def main(path: str, epochs: int = 3) -> list[float]:
    dataset = millrace.Dataset(path)
    loader = dataset.loader("train", 16, shuffle=True, drop_last=True, view=millrace.Crop(32), array="jax")
    weights = {"a": jnp.zeros((3 * 32 * 32, len(dataset.classes))), "b": jnp.zeros(len(dataset.classes))}
    losses = []
    for _ in range(epochs):
        for images, labels in loader:
            weights, loss = step(weights, images, labels)
            losses.append(float(loss))
    return losses


if __name__ == "__main__":
    print(main(sys.argv[1]))
