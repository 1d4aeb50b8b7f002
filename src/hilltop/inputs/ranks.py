"""The processes that torchrun started: which one this is, and what falls to it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed as dist

T = TypeVar("T")
_PATIENCE = timedelta(days=7)  # one rank may have a day more to do than another


@dataclass(frozen=True)
class Ranks:
    """One of several processes that do a job together; alone, the only one.

    Attributes:
        number: Which process this is, counting from 0.
        world: How many there are.
    """

    number: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes results and talks to the user."""
        return self.number == 0

    def share(self, jobs: Sequence[T]) -> Sequence[T]:
        """Return the jobs of this process; each job falls to one.

        Example:
            >>> Ranks(1, 3).share(range(8))
            range(1, 8, 3)
        """
        return jobs[self.number :: self.world]

    def wait(self) -> None:
        """Wait until all processes have come this far."""
        if self.world > 1:
            dist.barrier()

    def from_first(self, make: Callable[[], T]) -> T:
        """Return in every process what the first one makes; it must be possible to pickle it.

        Example:
            >>> Ranks().from_first(lambda: 5)
            5
        """
        if self.world == 1:
            return make()
        box: list[Any] = [make() if self.first else None]
        dist.broadcast_object_list(box)
        made: T = box[0]
        return made


@contextlib.contextmanager
def joined_ranks() -> Iterator[Ranks]:
    """Join the processes of torchrun for the time of a block; without torchrun there is one.

    Only the first one prints: the output of the others goes nowhere, but their errors do not.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks()
        return
    dist.init_process_group("gloo", timeout=_PATIENCE)
    ranks = Ranks(dist.get_rank(), dist.get_world_size())
    try:
        with contextlib.ExitStack() as stack:
            if not ranks.first:
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.enter_context(contextlib.redirect_stdout(nowhere))
            yield ranks
        ranks.wait()
    finally:
        dist.destroy_process_group()
