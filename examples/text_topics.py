"""Which topic is a document about? Bag-of-words, the weightiest words, and why so many features do no harm.

    python examples/text_topics.py                    # the documentation of scikit-learn, by topic
    python examples/text_topics.py --data DIR         # DIR/sms_spam.tsv.xz: one message a line, its label first

The documents are scikit-learn's documentation of each of its functions and classes; the topic is the package of the
function or class. A document is a vector of 0 and 1, one number for each word of the dictionary ([SSBD] 15.2.2).

The last table compares two views of the same halfspaces. By dimension, the error beyond the best halfspace falls like
√(d/m): hopeless where there are more words than documents. By margin it falls like √(ρ²B²/m), where ρ² is the largest
number of distinct words in a document and B = |w|: the dictionary does not appear in it ([SSBD] Corollary 15.7). C
trades one for the other: a small C keeps B small and pays for it with hinge loss.
"""

from __future__ import annotations

import argparse
import inspect
import lzma
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import train_test_split

from mercer import LinearSVC

TOPICS = ("cluster", "datasets", "ensemble", "linear_model", "metrics", "model_selection", "preprocessing")
WORD = r"(?u)\b[a-z]{3,}\b"
CS = (0.001, 0.003, 0.01, 0.03, 0.1, 1.0)


def documentation() -> tuple[list[str], list[str]]:
    """scikit-learn's documentation of its public functions and classes, without their names; the package of each."""
    texts, topics = [], []
    for topic in TOPICS:
        package = import_module(f"sklearn.{topic}")
        # experimental names are missing until they are enabled
        for name in sorted(set(package.__all__) & set(vars(package))):
            text = inspect.getdoc(getattr(package, name))
            if text:
                texts.append(re.sub(rf"\b({name}|{topic})\b", " ", text))
                topics.append(topic)
    return texts, topics


def messages(folder: Path) -> tuple[list[str], list[str]]:
    """Short messages, labelled spam or ham."""
    path = folder / "sms_spam.tsv.xz"
    if not path.exists():
        raise SystemExit(f"There is no {path.name} in {folder}: give the folder that holds it, or leave out --data.")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
    return [text for _, text in pairs], [label for label, _ in pairs]


def show_topics(train: Sequence[str], test: Sequence[str], y_train: np.ndarray, y_test: np.ndarray) -> LinearSVC:
    """Every topic against the rest, on tf-idf; the words that speak for each."""
    vectoriser = TfidfVectorizer(token_pattern=WORD, sublinear_tf=True)
    X = vectoriser.fit_transform(train)
    model = LinearSVC(loss="hinge").fit(X, y_train)
    accuracy = model.score(vectoriser.transform(test), y_test)
    print(f"{X.shape[0]} documents, {X.shape[1]} words; held-out accuracy {accuracy:.1%}")
    print(f"The model is {model.certificate_}.\n")
    words = vectoriser.get_feature_names_out()
    rows = model.coef_ if len(model.classes_) > 2 else np.vstack([-model.coef_, model.coef_])
    for label, weights in zip(model.classes_, rows, strict=True):
        print(f"  {label:16} {', '.join(words[np.argsort(-weights)[:8]])}")
    return model


def compare_views(
    train: Sequence[str], test: Sequence[str], y_train: np.ndarray, y_test: np.ndarray
) -> list[LinearSVC]:
    """The largest topic against the rest, on 0/1 vectors of words: B²ρ² against d for several C."""
    labels, counts = np.unique(y_train, return_counts=True)
    topic = labels[counts.argmax()]
    vectoriser = CountVectorizer(token_pattern=WORD, binary=True)
    X, X_test = vectoriser.fit_transform(train).astype(np.float64), vectoriser.transform(test).astype(np.float64)
    m, d = X.shape
    rho2 = X.sum(axis=1).max()
    models = LinearSVC(loss="hinge", fit_intercept=False).path(X, y_train == topic, CS)
    print(f"\n{topic} or not: m = {m} documents, d = {d} words, rho^2 = {rho2:.0f} distinct words at most")
    print(f"By dimension, d/m = {d / m:.2f}. By margin:\n")
    print("      C      B^2   rho^2 B^2   rho^2 B^2 / m   training error   held-out error")
    for model in models:
        b2 = float(np.sum(model.coef_**2))
        errors = [1 - model.score(A, y == topic) for A, y in ((X, y_train), (X_test, y_test))]
        line = f"{model.C:7g} {b2:8.3f} {rho2 * b2:11.1f} {rho2 * b2 / m:15.2f}"
        print(line + "".join(f"{error:17.1%}" for error in errors))
    return models


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the documents and print both parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with sms_spam.tsv.xz")
    parser.add_argument("--documents", type=int, help="use only this many documents")
    given = parser.parse_args(arguments)
    texts, topics = documentation() if given.data is None else messages(given.data)
    if given.documents is not None:
        chosen = np.random.default_rng(0).permutation(len(texts))[: given.documents]
        texts, topics = [texts[i] for i in chosen], [topics[i] for i in chosen]
    train, test, y_train, y_test = train_test_split(texts, np.array(topics), test_size=0.3, random_state=0)
    show_topics(train, test, y_train, y_test)
    compare_views(train, test, y_train, y_test)


if __name__ == "__main__":
    main()
