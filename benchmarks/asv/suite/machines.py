"""Fits, predictions and a search with the same parameters in both libraries. Loops are compiled in ``setup``."""

import numpy as np
from sklearn import svm
from sklearn.model_selection import GridSearchCV

import mercer

from .turns import share_of_time


def two_classes(n, d):
    X = np.random.default_rng(0).standard_normal((n, d))
    return X, X[:, 0] * X[:, 1] > 0


class _Machine:
    """A machine of mercer and the same of scikit-learn."""

    data = staticmethod(two_classes)
    size = (2000, 10)

    def setup(self):
        self.X, self.y = self.data(*self.size)
        self.mercer = self.ours().fit(self.X, self.y)
        self.peer = self.theirs().fit(self.X, self.y)
        self.mercer.predict(self.X)

    def time_fit(self):
        self.ours().fit(self.X, self.y)

    def time_predict(self):
        self.mercer.predict(self.X)

    def track_fit(self):
        return share_of_time(lambda: self.ours().fit(self.X, self.y), lambda: self.theirs().fit(self.X, self.y))

    def track_predict(self):
        return share_of_time(lambda: self.mercer.predict(self.X), lambda: self.peer.predict(self.X))

    def track_relative_gap(self):
        return self.mercer.certificate_.relative_gap

    track_fit.unit = track_predict.unit = "of scikit-learn's time"
    track_relative_gap.unit = "relative duality gap"


class SVC(_Machine):
    ours, theirs = mercer.SVC, svm.SVC


class SVR(_Machine):
    ours, theirs = mercer.SVR, svm.SVR

    @staticmethod
    def data(n, d):
        X = np.random.default_rng(0).standard_normal((n, d))
        return X, np.sin(X[:, 0])


class LinearSVC(_Machine):
    """The squared hinge loss, each library with its own defaults and tolerance."""

    ours, theirs = mercer.LinearSVC, svm.LinearSVC
    size = (5000, 20)


class Search:
    """Five folds, five C and five γ; scikit-learn in two processes, mercer with its threads."""

    timeout = 600
    C, gamma = np.logspace(-1, 3, 5), np.logspace(-3, 1, 5)

    def setup(self):
        self.X, self.y = two_classes(500, 10)
        self.ours()

    def ours(self):
        return mercer.SVCCV(Cs=self.C, gammas=self.gamma, cv=5).fit(self.X, self.y)

    def theirs(self):
        return GridSearchCV(svm.SVC(), {"C": self.C, "gamma": self.gamma}, cv=5, n_jobs=2).fit(self.X, self.y)

    def time_search(self):
        self.ours()

    def track_search(self):
        return share_of_time(self.ours, self.theirs, turns=3)

    track_search.unit = "of scikit-learn's time"
