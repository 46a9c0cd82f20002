"""When something is worth its price: every threshold that changes speed or memory, never results.

Each was measured where it is used. Code reads them when it runs, so that tests can change them.
"""

from __future__ import annotations

# Weights for decoding many inputs (bloom.py, packed_rows.py)
FILTER_SLOTS_PER_ITEM = 64  # an item pays for so many slots of a filter
PACKED_SLOTS_PER_ITEM = 32  # an item pays for so many slots of packed rows

# Learning (empty_rows.py, shared.py)
EMPTY_OF = 8  # of so many rows one may be empty before all empty ones are removed
CAPS_PER_RAISED = 2  # caps are chosen anew when one of so many was raised

# The memo of bundles and its bounds (shared.py)
CONTENTS_PER_ITEM, MOST_CONTENTS = 4, (1 << 17) - 1  # rows for the names of blocks in decoding
NAMED_FACTORS, NAMED_STEPS, NAMED_SEGMENTS = 1 << 8, 1 << 4, 1 << 12  # other rows for names
BLOCKS_AHEAD, FEATURES_AHEAD = 256, 1024  # that are looked up together
MOST_CAPS = 1 << 17  # that stay in the processor's cache

# One input at a time (decoder.py)
KEPT_STEPS = 1000  # of inputs whose working space is kept
KEPT_BYTES = 1 << 26  # of the nodes of a working space that is kept
MOST_GROWTH = 64  # times the usual number of nodes and edges

# Threads (estimators/prediction.py)
THREADED_ITEMS = 2000  # for fewer, threads cost more than they bring

# Ctrl-C (native/waiting.py)
SHORT_WORK = 1 << 26  # labels that are scored in less than a second

# Reading files (features/column_text.py)
SHORT_FILE = 1 << 14  # bytes of a file that the general code reads as fast
