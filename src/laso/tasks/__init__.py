"""Tasks: the search problem, and the form of inputs and outputs.

base.py        Task, the interface that the author of a task implements
sequences.py   base class of the tasks over sentences
tagging/ chunking/ joint/ parsing/ clustering/
               one folder for each task: its problem, its encoder, its task
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laso.tasks.base import Task

REGISTRY = {
    "tagging": "laso.tasks.tagging:TaggingTask",
    "chunking": "laso.tasks.chunking:ChunkingTask",
    "joint": "laso.tasks.joint:JointTask",
    "parsing": "laso.tasks.parsing:ParsingTask",
    "clustering": "laso.tasks.clustering:ClusteringTask",
    "coreference": "laso.tasks.clustering:CoreferenceTask",
    "records": "laso.tasks.clustering:RecordsTask",
}
"""The built-in tasks, by their names in model files."""


def task_type(name: str) -> type[Task]:
    """Return the class of a built-in task."""
    module, _, cls = REGISTRY[name].partition(":")
    task: type[Task] = getattr(import_module(module), cls)
    return task
