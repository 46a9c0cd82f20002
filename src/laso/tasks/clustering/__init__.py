"""Clustering: items join earlier ones."""

from laso.tasks.clustering.problem import Clustering

__all__ = ["Clustering"]
