"""Memory: what autograd keeps, what torch, Python or the whole process takes at most."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from timing import Work

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler would speak of graphics cards
MIB = 2**20


def saved_mib(work: Work, *given: Tensor) -> float:
    """MiB that autograd keeps from forward to backward, beside the ``given`` tensors."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        value = work()
    del value
    for own in given:
        kept.pop(own.data_ptr(), None)
    return sum(kept.values()) / MIB


def torch_peak_mib(work: Work) -> float:
    """Peak of what torch allocates during ``work``, in MiB; what is left at the end counts too."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        work()
    events = [
        event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"
    ]
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak / MIB


def extra_mib(work: Work) -> float:
    """Peak resident memory of this process during ``work`` beyond what it had before, in MiB."""
    done = threading.Event()
    before = peak = _resident_mib()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.001):
            peak = max(peak, _resident_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return peak - before


def traced_mib(work: Work) -> float:
    """Peak of what Python and numpy allocate during ``work``, in MiB; memory reused counts too."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB
