"""scikit-learn fits many small models in processes, each of which imports it again; `--fix` uses one process."""

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import learning_curve


def main() -> None:
    """Compute a learning curve of 50 small fits."""
    random = np.random.default_rng(1)
    data = random.random((600, 20))
    labels = (data.sum(axis=1) > 10).astype(int)
    jobs = 1 if "--fix" in sys.argv else 3
    model = LogisticRegression(max_iter=50)
    learning_curve(model, data, labels, cv=5, n_jobs=jobs, train_sizes=np.linspace(0.1, 1.0, 10))


if __name__ == "__main__":
    main()
