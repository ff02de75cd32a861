"""A well-behaved program: products of matrices, whole arrays at a time. There is nothing to win in Python."""

import numpy as np

rng = np.random.default_rng(1)
weights = rng.random((400, 400))
state = rng.random((400, 400))
for _ in range(150):
    state = np.tanh(state @ weights)
print(float(state.sum()))
