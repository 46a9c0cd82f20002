"""Segmentation and labelling: chunks of sentences (section 4.1 of the paper)."""

from laso.tasks.chunking.problem import Chunking
from laso.tasks.chunking.task import ChunkingTask

__all__ = ["Chunking", "ChunkingTask"]
