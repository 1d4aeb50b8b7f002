"""What holds for every test: one thread, here and in the processes that tests start.

Heads and batches of tests are so small that further threads only spin, and sums then do not depend
on how many cores a machine has.
"""

from __future__ import annotations

import os

import torch

os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)  # a plugin of pytest may have imported torch before this file was read
