"""Tasks: what is searched and what an output is.

base.py        Task, the one page that the author of a task reads
sequences.py   what the tasks over sentences share
tagging/ chunking/ joint/ parsing/ clustering/
               one room for each task: its problem, its encoder, its task
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
}
"""The built-in tasks by the names that model files have."""


def task_type(name: str) -> type[Task]:
    """Return the class of a built-in task."""
    module, _, cls = REGISTRY[name].partition(":")
    found: type[Task] = getattr(import_module(module), cls)
    return found
