"""HilltopClassifier in a scikit-learn pipeline and search; features and labels are generated.

Run it with: python examples/sklearn_search.py
"""

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from hilltop.integrations import HilltopClassifier


def main() -> None:
    """Train on 40% of the labels and print mAP on complete ones."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((1500, 40)).astype(np.float32)
    logits = inputs @ rng.standard_normal((40, 20)) / 6.3
    labels = (logits + 0.5 * rng.standard_normal((1500, 20)) > 1.2).astype(int)
    kept = sparse.csr_matrix(labels[:1000] * (rng.random((1000, 20)) < 0.4))
    pipeline = make_pipeline(PCA(32), HilltopClassifier(epochs=10, random_state=0))
    search = GridSearchCV(
        pipeline, {"hilltopclassifier__loss": ["bce", "auto"]}, cv=KFold(2)
    )  # the score is mAP on the labels that are there
    search.fit(inputs[:1000], kept)
    print(f"best loss {search.best_params_['hilltopclassifier__loss']}")
    print(f"on complete labels mAP {100 * search.score(inputs[1000:], labels[1000:]):.2f}")


if __name__ == "__main__":
    main()
