"""Scorers for scikit-learn's ``cross_val_score`` and searches, as sklearn-crfsuite has them."""

from sklearn.metrics import make_scorer

from laso.metrics import flat_accuracy_score, sequence_accuracy_score

flat_accuracy = make_scorer(flat_accuracy_score)
sequence_accuracy = make_scorer(sequence_accuracy_score)
