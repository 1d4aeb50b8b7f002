"""One rank of a command in which the second process is killed once the first has kept something.

Its words: the folder and the pattern of what is kept, then those of the command. Without a pattern
none is killed.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hilltop.audit.find import ranking
from hilltop.cli.main import main
from hilltop.inputs.shards import FeatureShards
from hilltop.training import class_blocks
from hilltop.training.class_blocks import _Learning


def killed(real: Callable[..., Any], folder: str, pattern: str) -> Callable[..., Any]:
    """Do what is to be done, but in the second process end by a signal instead."""

    def work(*given: Any, **options: Any) -> Any:
        if os.environ["RANK"] == "1":
            while not any(Path(folder).glob(pattern)):
                time.sleep(0.005)
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **options)

    return work


if __name__ == "__main__":
    folder, pattern, *words = sys.argv[1:]
    class_blocks._WHOLE_BLOCK_ENTRIES = 400 * 8 * 2  # several blocks in a small audit
    if pattern.startswith("shard"):
        compute = killed(FeatureShards.compute, folder, pattern)
        FeatureShards.compute = compute  # type: ignore[method-assign]
    elif pattern.startswith("rank"):
        ranking.rank_shard = killed(ranking.rank_shard, folder, pattern)
    elif pattern:
        solve = killed(_Learning.solve_all, folder, pattern)
        _Learning.solve_all = solve  # type: ignore[method-assign]
    sys.exit(main(words))
