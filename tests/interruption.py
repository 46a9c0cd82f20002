"""Ctrl-C at a moment of one's choice."""

from __future__ import annotations


class StopAfter:
    """Progress that is interrupted at the nth report."""

    def __init__(self, n):
        self.left = n

    def __call__(self, report):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
