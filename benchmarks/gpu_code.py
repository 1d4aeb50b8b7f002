"""What does the compiled code of a loss on a GPU do? Known without having one.

Every loss is compiled for a GPU, and its code is read: bytes loaded and stored for each pair of
image and class, instructions, registers and spills. From these and data sheets of two GPUs comes
the roofline table of docs/gpu.md: computed, never measured. With a GPU, gpu.py measures.

Run it with: python benchmarks/gpu_code.py [--arch 80 90 gfx942] [--losses ...] [--all] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.pop("TRITON_INTERPRET", None)  # Triton asks when it is imported

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hilltop.losses import LOSSES, MultiLabelLoss, build
from hilltop.losses.base import LabelStats
from hilltop.losses.engine import device, dispatch, triton_kernel
from hilltop.losses.engine.kernel import FusedLoss
from hilltop.losses.terms.correction import SelectiveCorrection

THREADS = 32 * device.LAUNCH["num_warps"]
NAMES = [parameter.name for parameter in triton_kernel.loss_kernel.params]
SIZES = {"fp32": 4, "fp16": 2, "bf16": 2, "i1": 1}
KEPT = {"fp16": "fp32"}  # in which the gradient waits, see device.kept_dtype


SHOWN = ["bce", "hill", "splc_released", "asl", "kept_independently"]


class Gpu(NamedTuple):
    """Figures of a data sheet: bytes of memory and instructions of single lanes in a second."""

    arch: str
    bytes_s: float
    instructions_s: float


# SXM modules with 80 GB. A multiplication with addition counts as two of the 19.5 and 67 TFLOPS.
GPUS = [Gpu("80", 2.039e12, 19.5e12 / 2), Gpu("90", 3.35e12, 67e12 / 2)]


class Variant(NamedTuple):
    """One compiled form of a loss."""

    loss: str
    logits: str = "fp32"
    targets: str = "fp32"
    masks: tuple[str, ...] = ()
    weights: bool = False
    entries: bool = False
    grad: bool = True

    def least_bytes(self) -> tuple[int, int]:
        """Bytes that a pair needs at least, read and written."""
        read = SIZES[self.logits] + SIZES[self.targets] + len(self.masks)
        written = SIZES[KEPT.get(self.logits, self.logits)] * self.grad
        return read, written + 4 * self.entries


class Code(NamedTuple):
    """What was found in compiled code; bytes and instructions are for each pair."""

    registers: int
    spilled: int
    loaded: float | None = None
    stored: float | None = None
    instructions: float | None = None


def form_of(name: str) -> tuple[FusedLoss, list[str]] | None:
    """The form of a loss in training, and the masks it cannot do without; None if it has none."""
    loss = build(name)
    loss.prepare(LabelStats.of(torch.eye(80)))
    loss = getattr(loss, "inner", None) or loss
    if not isinstance(loss, MultiLabelLoss):
        return None
    device.runs_on = lambda logits: True
    form = dispatch.kernel_form(loss, loss.batch(torch.zeros(2, 80), torch.zeros(2, 80)))
    selects = isinstance(loss.correction, SelectiveCorrection)
    return None if form is None else (form, ["selected"] if selects else [])


def compile_variant(variant: Variant, form: FusedLoss, target: GPUTarget) -> Any:
    """Compile the kernel as it is launched for such tensors, of a size that 16 divides."""
    kinds = dict.fromkeys(NAMES, "constexpr")
    kinds |= {"logits": f"*{variant.logits}", "targets": f"*{variant.targets}"}
    kinds |= {"partials": "*fp32", "size": "i32", "classes": "i32", "blocks": "i32"}
    kinds |= dict.fromkeys(variant.masks, "*i1")
    if variant.grad:
        kinds["grad"] = f"*{KEPT.get(variant.logits, variant.logits)}"
    if variant.entries:
        kinds["entries"] = "*fp32"
    if variant.weights:
        kinds |= {"class_weight": "*fp32", "pos_weight": "*fp32"}
    if form.start_epoch:
        kinds["epoch"] = "*i64"
    if form.positive.by_class:
        kinds |= {"constants": "*fp32", "rates": "*fp32"}
    values = {"form": form, "block": triton_kernel.BLOCK}
    places = list(enumerate(NAMES))
    source = ASTSource(
        fn=triton_kernel.loss_kernel,
        signature=kinds,
        constexprs={(at,): values.get(name) for at, name in places if kinds[name] == "constexpr"},
        attrs={
            (at,): [["tt.divisibility", 16]]
            for at, name in places
            if kinds[name].startswith("*") or name == "size"
        },
    )
    return triton.compile(source, target=target, options=dict(device.LAUNCH))


def resources(compiled: Any) -> tuple[int, int]:
    """Registers of a thread and bytes that it spills, as NVIDIA's finished code says."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.TemporaryDirectory() as scratch:
        binary = Path(scratch, "loss.cubin")
        binary.write_bytes(compiled.asm["cubin"])
        command = [tool, "--dump-resource-usage", binary]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = {name: int(number) for name, number in re.findall(r"(REG|STACK|LOCAL):(\d+)", said)}
    return used["REG"], used["STACK"] + used["LOCAL"]


def read_ptx(
    compiled: Any, each: float = THREADS / triton_kernel.BLOCK, *, words: bool = False
) -> Code:
    """Read NVIDIA's code.

    Args:
        compiled: The kernel.
        each: How many threads there are for a pair.
        words: Whether a thread has so few pairs that it loads their bytes as one word.
    """
    text = compiled.asm["ptx"]
    lines = [line.strip() for line in text.splitlines() if line.startswith("\t")]
    run = [line for line in lines if line.endswith(";") and not line.startswith(".")]
    return Code(
        *resources(compiled),
        each * sum(_bytes(line, "ld") or words * _word(line) for line in run),
        each * sum(_bytes(line, "st") for line in run),
        each * len(run),
    )


def _bytes(line: str, kind: str) -> int:
    """Bytes that an instruction moves in each thread.

    Single words are not counted: they are those that one thread writes for its block, or numbers
    that all pairs or all images share.
    """
    found = re.search(kind + r"\.global(?:\.\w+)*?\.v(\d)\.b(\d+)", line)
    return int(found[1]) * int(found[2]) // 8 if found else 0


def _word(line: str) -> int:
    """Bytes of a single word that every thread with a pair loads: others are not masked so."""
    return 4 if re.match(r"@%p\d+ ld\.global\.b32 \{", line) else 0


def read_amdgcn(compiled: Any) -> Code:
    """Read what AMD's assembly says of itself."""
    text = compiled.asm["amdgcn"]
    numbers = {
        name: int(re.findall(rf"\.{name}:\s+(\d+)", text)[0])
        for name in ("vgpr_count", "vgpr_spill_count", "sgpr_spill_count")
    }
    return Code(numbers["vgpr_count"], numbers["vgpr_spill_count"] + numbers["sgpr_spill_count"])


def examine(variant: Variant, form: FusedLoss, arch: str) -> Code:
    """Compile a loss for a GPU and read its code."""
    if arch.startswith("gfx"):
        return read_amdgcn(compile_variant(variant, form, GPUTarget("hip", arch, 64)))
    return read_ptx(compile_variant(variant, form, GPUTarget("cuda", int(arch), 32)))


def variants(names: list[str], *, every: bool) -> Iterator[tuple[Variant, FusedLoss]]:
    """Losses with different forms, each as it is called most; or in every way."""
    seen: set[tuple[Any, ...]] = set()
    for name in names:
        found = form_of(name)
        if found is None or (found[0], *found[1]) in seen:
            continue
        form, needed = found
        seen.add((form, *needed))
        kinds = [("fp32", "fp32"), ("bf16", "i1")]
        if every:
            kinds = [(one, other) for one in ("fp32", "fp16", "bf16") for other in ("fp32", "i1")]
        for logits, targets in kinds:
            plain = Variant(name, logits, targets, tuple(needed))
            yield plain, form
            if every:
                yield plain._replace(masks=("observed", *needed), weights=True), form
                yield plain._replace(entries=True), form
                yield plain._replace(grad=False), form


def table() -> list[str]:
    """The lines of the roofline table: what a million pairs take at least."""
    lines = [
        "| loss | logits, targets | bytes a pair | instructions a pair | registers"
        " | A100: memory | A100: instructions | H100: memory | H100: instructions |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for variant, form in variants(SHOWN, every=False):
        found = [examine(variant, form, gpu.arch) for gpu in GPUS]
        forward, kept = variant.least_bytes()
        moved = forward + kept + 2 * kept  # backward reads the gradient and writes it
        codes = zip(GPUS, found, strict=True)
        times = (
            f"{1e12 * need / rate:.1f} µs"
            for gpu, code in codes
            for need, rate in ((moved, gpu.bytes_s), (code.instructions or 0, gpu.instructions_s))
        )
        registers = " and ".join(str(code.registers) for code in found)
        kinds = f"{variant.logits}, {'bool' if variant.targets == 'i1' else variant.targets}"
        first = f"| `{variant.loss}` | {kinds} | {forward} + {kept}, {kept} + {kept}"
        lines.append(
            f"{first} | {found[0].instructions:.0f} | {registers} | " + " | ".join(times) + " |"
        )
    return lines


def arguments() -> argparse.Namespace:
    """Read the command line."""
    given = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    given.add_argument("--arch", nargs="+", default=["80", "90"], help="80, 90 or gfx942")
    given.add_argument("--losses", nargs="+", default=list(LOSSES))
    given.add_argument("--all", action="store_true", help="every dtype, mask, weight and reduction")
    given.add_argument("--cache", help="where Triton keeps compiled code, if not at its own place")
    given.add_argument("--table", action="store_true", help="the table of docs/gpu.md")
    given.add_argument("--json", action="store_true", help="a line of JSON for each")
    return given.parse_args()


def main() -> None:
    """Print what was found."""
    options = arguments()
    if options.cache:
        os.environ["TRITON_CACHE_DIR"] = options.cache
    if options.table:
        print("\n".join(table()))
        return
    for variant, form in variants(options.losses, every=options.all):
        for arch in options.arch:
            code, least = examine(variant, form, arch), variant.least_bytes()
            row = {**variant._asdict(), "arch": arch, **code._asdict(), "least": least}
            print(
                json.dumps(row) if options.json else f"{variant}\n  {arch}: {code}, least {least}"
            )


if __name__ == "__main__":
    main()
