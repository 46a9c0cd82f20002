"""One job in one fresh process: ``python -m studies.worker JOB.json RESULT.json``.

A job names a function as ``module:function`` under ``call``. The function gets the job, and what it
returns is the result. Both are JSON files, since a measured program may write to standard output.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from importlib import import_module
from pathlib import Path


def main(job_file: str, result_file: str) -> None:
    """Run the job and write its result."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    module, _, name = job["call"].partition(":")
    result = getattr(import_module(module), name)(job)
    Path(result_file).write_text(json.dumps(result), encoding="utf-8")


def _end_with_parent(parent: int) -> None:
    """End this process when its parent has ended, since nobody reads its result."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
