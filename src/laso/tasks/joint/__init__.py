"""Several layers of labels at once: one of each for every token (section 4.2 of the paper)."""

from laso.tasks.joint.problem import Joint
from laso.tasks.joint.task import JointTask

__all__ = ["Joint", "JointTask"]
