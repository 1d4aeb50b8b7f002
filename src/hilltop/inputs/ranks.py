"""Processes that share a job: those that torchrun started, or workers of a Ray cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from hilltop.data.files import replacing
from hilltop.errors import HilltopError, MissingExtra
from hilltop.progress import ProgressLog, say

T = TypeVar("T")
Arrays = tuple[npt.NDArray[Any], ...]
_ANSWER_S = 10.0
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

    def each(self, jobs: Sequence[T], do: Callable[[T], object]) -> Iterator[T]:
        """Do the jobs of this process, and yield those that are done; then wait for the others.

        What a job leaves is a file in a folder that all processes see.
        """
        for job in self.share(jobs):
            do(job)
            yield job
        self.wait()

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


@dataclass(frozen=True)
class Parts:
    """Parts of a job that processes share, as files that outlive a kill.

    Attributes:
        folder: Where the files are, which all machines see; without one, nothing is kept.
        ranks: The processes.
    """

    folder: Path | None = None
    ranks: Ranks = Ranks()

    def write(
        self, names: Sequence[str], write: Callable[[int, Path], object], what: str
    ) -> list[Path]:
        """Write the files that are not there yet, and return all.

        Args:
            names: Names of the files.
            write: Writes the file of a number, completely or not at all.
            what: What is being done, such as "features".
        """
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        files = [self.folder / name for name in names]
        missing = [number for number, file in enumerate(files) if not file.is_file()]
        if len(missing) < len(files):
            say(f"{what}: {len(files) - len(missing)} of {len(files)} shards are there already")
        self.ranks.wait()  # before the first appears, or processes would see different ones missing
        with ProgressLog(what, len(self.ranks.share(missing)), "shards") as progress:
            made = self.ranks.each(missing, lambda number: write(number, files[number]))
            for done, _ in enumerate(made, start=1):
                progress.update(done)
        return files

    def make(
        self, names: Sequence[str], make: Callable[[int], Arrays], what: str
    ) -> Iterator[Arrays]:
        """Yield the parts of all numbers in order, in every process.

        Args:
            names: Names of the files.
            make: Makes the part of a number, a few arrays.
            what: What is being done.
        """
        if self.folder is None or (self.ranks.world == 1 and len(names) == 1):
            with ProgressLog(what, len(names), "shards") as progress:
                for number in range(len(names)):
                    yield make(number)
                    progress.update(number + 1)
            return

        def write(number: int, file: Path) -> None:
            with replacing(file) as temporary:
                np.savez(temporary, *make(number))

        for file in self.write(names, write, what):
            with np.load(file, allow_pickle=False) as content:
                yield tuple(content.values())
        self.ranks.wait()  # or one process would remove what another still reads


@dataclass(frozen=True)
class RayWorkers(Ranks):
    """The workers of a Ray cluster, which do the jobs that this process gives them.

    Attributes:
        world: How many workers there are. One that is killed is started anew, and does its job
            again.
    """

    def share(self, jobs: Sequence[T]) -> Sequence[T]:
        """Return all jobs: this process gives them out."""
        return jobs

    def each(self, jobs: Sequence[T], do: Callable[[T], object]) -> Iterator[T]:
        """Give each worker that has nothing to do the next job."""
        import ray

        waiting = list(jobs)
        running: dict[Any, tuple[Any, T]] = {}
        work = ray.put(do)  # once a machine, not once a job
        workers = [_ray_worker().remote(work) for _ in range(min(self.world, len(jobs)))]
        while waiting or running:
            while workers and waiting:
                worker, job = workers.pop(), waiting.pop(0)
                running[worker.run.remote(job)] = worker, job
            (done,), _ = ray.wait(list(running))
            worker, job = running.pop(done)
            try:
                ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            workers.append(worker)
            yield job

    def wait(self) -> None:
        """Workers have nothing to do between calls of :meth:`each`."""

    def from_first(self, make: Callable[[], T]) -> T:
        """Return what this process makes."""
        return make()


def _ray_worker() -> Any:
    import ray

    @ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)
    class Worker:
        def __init__(self, do: Callable[[Any], object]) -> None:
            self._do = do

        def run(self, job: Any) -> None:
            self._do(job)

    return Worker


@contextlib.contextmanager
def ray_workers() -> Iterator[RayWorkers]:
    """Use the Ray cluster that ``RAY_ADDRESS`` names, or one of this machine for a while.

    Raises:
        MissingExtra: Ray is not installed.
        HilltopError: No cluster answers at the address.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("--engine ray", error.name, "ray") from None
    mine = not ray.is_initialized()
    if mine:
        address = os.environ.get("RAY_ADDRESS", "")
        silent = HilltopError(
            f"No Ray cluster answers at RAY_ADDRESS={address!r}. Start one there, or unset"
            " RAY_ADDRESS to use this machine."
        )
        if not _answers(address):
            raise silent
        try:
            ray.init(include_dashboard=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError):
            if address:
                raise silent from None
            raise
    # As arrays, tensors are in memory once for all workers of a machine.
    ray.util.register_serializer(torch.Tensor, serializer=_as_array, deserializer=_as_tensor)
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    try:
        yield RayWorkers(world=int(resources.get("CPU", 1)))
    finally:
        if mine:
            ray.shutdown()


def _answers(address: str) -> bool:
    """Whether something listens where an address leads to; Ray itself would ask for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return True  # such as "auto": Ray knows
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, OverflowError):
        return False
    return True


def _as_array(tensor: torch.Tensor) -> Any:
    return tensor.detach().numpy()


def _as_tensor(array: Any) -> torch.Tensor:
    with warnings.catch_warnings():  # nobody writes to what all workers share
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def engine_ranks(engine: Literal["torchrun", "ray"]) -> contextlib.AbstractContextManager[Ranks]:
    """The processes of ``--engine``."""
    return ray_workers() if engine == "ray" else joined_ranks()


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
