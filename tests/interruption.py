"""Ctrl-C or a kill at a moment of one's choice."""

from __future__ import annotations


class StopAfter:
    """Progress that is interrupted at the nth report."""

    def __init__(self, n):
        self.left = n

    def __call__(self, report):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


KILLED = """
import os, sys
from laso.estimators import prediction
from laso.estimators.learning import fitting
fitting.Checkpoint.is_due = lambda self: True
left = int(sys.argv.pop(1))
write = prediction.write_file
def write_and_die(path, *rest, **how):
    global left
    size = write(path, *rest, **how)
    left -= 1
    if not left:
        os.kill(os.getpid(), 9)
    return size
prediction.write_file = write_and_die
from laso.cli import main
main()
"""
"""A program that is killed when it has written so many checkpoints; then come its arguments."""
