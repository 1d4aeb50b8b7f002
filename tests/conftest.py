"""What holds for every test: one thread, here and in the processes that tests start."""

from __future__ import annotations

import os

# Before torch is imported. Heads and batches of tests are so small that further threads only spin,
# and sums then do not depend on how many cores a machine has.
os.environ.setdefault("OMP_NUM_THREADS", "1")
