"""Clustering: items join clusters one by one; mentions of a text are a preset."""

from laso.tasks.clustering.coreference_task import CoreferenceTask
from laso.tasks.clustering.task import ClusteringTask

__all__ = ["ClusteringTask", "CoreferenceTask"]
