"""Clustering: items join clusters one by one; mentions and records are presets."""

from laso.tasks.clustering.coreference_task import CoreferenceTask
from laso.tasks.clustering.records import RecordsTask
from laso.tasks.clustering.tables import clusters_from_pairs
from laso.tasks.clustering.task import ClusteringTask

__all__ = ["ClusteringTask", "CoreferenceTask", "RecordsTask", "clusters_from_pairs"]
