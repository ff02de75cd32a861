"""Trains a small image classifier in NumPy, and waits too long for its data: a program to profile.

    warplens profile -o train python examples/train.py
    warplens stats train.warplens
    warplens timeline train.warplens

The main thread trains; loader threads prepare batches ahead of it; a pool of processes scores the model after each epoch.
All of it is annotated: `epoch`, `step`, `load`, `forward`, `backward` and `optimizer` on the main thread, `prepare` and
what it consists of in the domain `loader`, `score` in the domain `evaluation`; a mark for each loss, epoch and new best.

**What is wrong with it.** `load`, the wait for the next batch, is most of every `step`. The samples are stored as HDF5 and
Zarr store them, in compressed blocks of 64. Batches are random samples, so nearly each of the 256 lies in another block, and
a whole block is unpacked to get one sample out of it: 256 `unpack` in each `prepare`. `python examples/train.py --fix` takes
random blocks instead, and all samples of each: four `unpack` for a batch. Profile that as well.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing.pool import Pool
from typing import TypeAlias

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # NumPy reads it once; matrices this small are not worth more threads

import numpy as np
from numpy.typing import NDArray

import warplens.nvtx as nvtx  # with PyPI nvtx: import nvtx

SIDE, CLASSES, HIDDEN = 24, 10, 256
TRAIN, TEST, BATCH, BLOCK = 5120, 2048, 256, 64
PREFETCH, LOADERS, SCORERS = 4, 2, 2

Floats: TypeAlias = NDArray[np.float32]
Weights: TypeAlias = dict[str, Floats]
Batch: TypeAlias = tuple[Floats, NDArray[np.int64]]

# 0xRRGGBB; names such as "green" do as well.
BLUE, PALE, RED, GREEN, LIME, PURPLE, ORANGE, SAND, TEAL = (
    0x4E79A7, 0xA0CBE8, 0xE15759, 0x59A14F, 0x8CD17D, 0xB07AA1, 0xF28E2B, 0xF1CE63, 0x76B7B2,
)  # fmt: skip

# Bound once: what all ranges of a part of the program share.
training = partial(nvtx.annotate, category="training")
loading = partial(nvtx.annotate, domain="loader", category="input", color=SAND)


@dataclass(frozen=True)
class Data:
    """Images, stored in compressed blocks of BLOCK, and what each shows."""

    blocks: list[bytes]
    labels: NDArray[np.int64]


@nvtx.annotate("make data", color=PURPLE)
def make_data(rng: np.random.Generator) -> tuple[Data, Batch]:
    """Ten blurred patterns in noise: a set to train on and a set to test on."""
    patterns = rng.normal(size=(CLASSES, SIDE, SIDE))
    for axis in (1, 2):
        patterns += np.roll(patterns, 1, axis) + np.roll(patterns, -1, axis)
    labels = rng.integers(CLASSES, size=TRAIN + TEST)
    images = patterns[labels].reshape(-1, SIDE * SIDE) + rng.normal(
        scale=14.0, size=(TRAIN + TEST, SIDE * SIDE)
    )
    pixels = np.clip(128 + 4 * images, 0, 255).astype(np.uint8)
    blocks = [zlib.compress(pixels[first : first + BLOCK].tobytes(), 1) for first in range(0, TRAIN, BLOCK)]
    return Data(blocks, labels[:TRAIN]), (normalise(pixels[TRAIN:]), labels[TRAIN:])


def normalise(pixels: NDArray[np.uint8]) -> Floats:
    """Pixels (0 to 255) as numbers around 0."""
    return (pixels.astype(np.float32) - np.float32(128)) / np.float32(64)


def name_this_thread(name: str) -> None:
    """Tell the system the thread's name, as Python itself does from 3.14 on."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
            file.write(name)
    except OSError:
        pass  # not on Linux


class Loader:
    """Prepares batches in threads, a few ahead of the one that is asked for."""

    def __init__(self, data: Data, *, whole_blocks: bool) -> None:
        self._data = data
        self._whole_blocks = whole_blocks
        self._numbers = iter(range(LOADERS))
        self._threads = ThreadPoolExecutor(
            LOADERS, initializer=lambda: name_this_thread(f"loader {next(self._numbers)}")
        )

    def batches(self, rng: np.random.Generator) -> Iterator[Batch]:
        """One pass over the data in a new order."""
        pieces = TRAIN // BLOCK if self._whole_blocks else TRAIN
        ready: deque[Future[Batch]] = deque()
        for number, chosen in enumerate(np.split(rng.permutation(pieces), TRAIN // BATCH)):
            ready.append(self._threads.submit(self._prepare, number, chosen.tolist()))
            if len(ready) > PREFETCH:
                yield ready.popleft().result()
        while ready:
            yield ready.popleft().result()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def _prepare(self, number: int, chosen: list[int]) -> Batch:
        with loading("prepare", payload=number):
            labels = self._data.labels
            if self._whole_blocks:
                pixels = np.concatenate([self._unpack(block) for block in chosen])
                labels = labels.reshape(-1, BLOCK)[chosen].ravel()
            else:
                pixels = np.stack([self._unpack(sample // BLOCK)[sample % BLOCK] for sample in chosen])
                labels = labels[chosen]
            with loading("normalise"):
                return normalise(pixels), labels

    def _unpack(self, block: int) -> NDArray[np.uint8]:
        with loading("unpack", color=ORANGE, payload=block):
            return np.frombuffer(zlib.decompress(self._data.blocks[block]), np.uint8).reshape(BLOCK, -1)


def new_weights(rng: np.random.Generator) -> Weights:
    """Two layers, small random numbers."""
    sizes = [SIDE * SIDE, HIDDEN, CLASSES]
    weights: Weights = {}
    for layer, (wide, narrow) in enumerate(pairwise(sizes), 1):
        weights[f"w{layer}"] = rng.normal(scale=wide**-0.5, size=(wide, narrow)).astype(np.float32)
        weights[f"b{layer}"] = np.zeros(narrow, np.float32)
    return weights


def forward(weights: Weights, images: Floats) -> tuple[Floats, Floats]:
    """Hidden layer and class probabilities, one row per image."""
    hidden = np.maximum(images @ weights["w1"] + weights["b1"], 0)
    scores = hidden @ weights["w2"] + weights["b2"]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, powers / powers.sum(axis=1, keepdims=True)


def backward(
    weights: Weights, images: Floats, labels: NDArray[np.int64], hidden: Floats, chances: Floats
) -> Weights:
    """Gradients of the mean cross-entropy."""
    scores = chances.copy()
    scores[np.arange(len(labels)), labels] -= 1
    scores /= len(labels)
    inner = (scores @ weights["w2"].T) * (hidden > 0)
    return {
        "w1": images.T @ inner,
        "b1": inner.sum(axis=0),
        "w2": hidden.T @ scores,
        "b2": scores.sum(axis=0),
    }


def train_step(weights: Weights, momentum: Weights, batch: Batch, rate: float) -> float:
    """Learn from one batch; returns its loss."""
    images, labels = batch
    with training("forward", color=GREEN):
        hidden, chances = forward(weights, images)
        loss = float(-np.log(chances[np.arange(len(labels)), labels] + 1e-9).mean())
    with training("backward", color=LIME, payload=loss):
        gradients = backward(weights, images, labels, hidden, chances)
    with training("optimizer", color=PURPLE):
        for name, gradient in gradients.items():
            momentum[name] = 0.9 * momentum[name] + gradient
            weights[name] -= rate * momentum[name]
    return loss


def score(weights: Weights, batch: Batch) -> int:
    """How many of a batch the model gets right; runs in the worker processes."""
    images, labels = batch
    with nvtx.annotate("score", color=TEAL, domain="evaluation", payload=len(labels)):
        return int((forward(weights, images)[1].argmax(axis=1) == labels).sum())


@nvtx.annotate("evaluate", color=TEAL)
def evaluate(pool: Pool, weights: Weights, test: Batch) -> float:
    """The share of the test set that the model gets right."""
    pieces = zip(*(np.array_split(part, 2 * SCORERS) for part in test), strict=True)
    return sum(pool.starmap(score, [(weights, (images, labels)) for images, labels in pieces])) / len(test[1])


def train(
    epochs: int, data: Data, test: Batch, pool: Pool, rng: np.random.Generator, *, whole_blocks: bool
) -> None:
    """Train and test `epochs` times; prints a line for each."""
    weights = new_weights(rng)
    momentum = {name: np.zeros_like(value) for name, value in weights.items()}
    loader = Loader(data, whole_blocks=whole_blocks)
    best = 0.0
    for epoch in range(epochs):
        begun = time.perf_counter()
        losses = []
        with nvtx.annotate("epoch", color=BLUE, payload=epoch):
            batches = loader.batches(rng)
            for number in range(TRAIN // BATCH):
                with training("step", color=PALE, payload=number):
                    with training("load", color=RED):
                        batch = next(batches)
                    losses.append(train_step(weights, momentum, batch, rate=0.02))
                nvtx.mark("loss", color=BLUE, category="metrics", payload=losses[-1])
            accuracy = evaluate(pool, weights, test)
            nvtx.mark("epoch end", color=BLUE, category="metrics", payload=epoch)
            if accuracy > best:
                best = accuracy
                nvtx.mark("new best", color=GREEN, category="metrics", payload=accuracy)
        print(
            f"epoch {epoch + 1}  loss {np.mean(losses):.3f}  accuracy {accuracy:.1%}  {time.perf_counter() - begun:.2f} s",
            flush=True,
        )
    loader.close()


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description="Train a small image classifier in NumPy.")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--fix", action="store_true", help="take whole blocks of samples, not single ones")
    parser.add_argument(
        "--start-method",
        choices=multiprocessing.get_all_start_methods(),
        help="how the worker processes start",
    )
    options = parser.parse_args()
    name_this_thread("training")
    rng = np.random.default_rng(7)
    # before there are threads, which a forked process would not have
    with multiprocessing.get_context(options.start_method).Pool(
        SCORERS, name_this_thread, ("evaluation",)
    ) as pool:
        data, test = make_data(rng)
        train(options.epochs, data, test, pool, rng, whole_blocks=options.fix)
        pool.close()
        pool.join()
    print("done")


if __name__ == "__main__":
    main()
