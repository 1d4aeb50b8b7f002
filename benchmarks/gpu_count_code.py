"""What does the compiled code of kept_by_count on a GPU do? Known without having one.

Its kernel is compiled for every size of a block, and its code is read as in gpu_code.py: registers,
spills, and bytes loaded and stored for each pair. Run it with:
python benchmarks/gpu_count_code.py [--arch 80 90] [--classes 80 ...] [--all] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

os.environ.pop("TRITON_INTERPRET", None)  # Triton asks when it is imported

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gpu_code import KEPT, SIZES, Code, read_amdgcn, read_ptx
from hilltop.losses.engine import count_device, triton_count
from hilltop.losses.engine.count_device import CountForm
from hilltop.losses.likelihood.count_rule import CountRule

NAMES = [parameter.name for parameter in triton_count.count_kernel.params]


class Variant(NamedTuple):
    """One compiled form; the number of classes is the largest that its block takes."""

    classes: int
    r: str = "0.8"
    restore_prob: float = 0.0
    logits: str = "fp32"
    targets: str = "fp32"
    observed: bool = False
    warmup: bool = False
    grad: bool = True

    def least_bytes(self) -> tuple[int, int]:
        """Bytes that a pair needs at least, read and written."""
        written = SIZES[KEPT.get(self.logits, self.logits)] * self.grad
        return SIZES[self.logits] + SIZES[self.targets] + self.observed, written


def compile_variant(variant: Variant, target: GPUTarget) -> Any:
    """Compile the kernel as it is launched for such tensors."""
    kinds = dict.fromkeys(NAMES, "constexpr")
    kinds |= {"logits": f"*{variant.logits}", "targets": f"*{variant.targets}"}
    kinds |= {"partials": "*fp32", "classes": "i32", "rows": "i32", "share": "fp32"}
    if variant.grad:
        kinds["grad"] = f"*{KEPT.get(variant.logits, variant.logits)}"
    if variant.observed:
        kinds["observed"] = "*i1"
    if variant.warmup:
        kinds["epoch"] = "*i64"
    rule = CountRule.of(variant.r, restore_prob=variant.restore_prob)
    options = count_device.launch_options(variant.classes)
    values = {"form": CountForm.of(rule, 4 * variant.warmup), "block": options.pop("block")}
    places = list(enumerate(NAMES))
    source = ASTSource(
        fn=triton_count.count_kernel,
        signature=kinds,
        constexprs={(at,): values.get(name) for at, name in places if kinds[name] == "constexpr"},
        attrs={
            (at,): [["tt.divisibility", 16]]
            for at, name in places
            if kinds[name].startswith("*") or name == "classes"
        },
    )
    return triton.compile(source, target=target, options=options)


def examine(variant: Variant, arch: str) -> Code:
    """Compile a form for a GPU and read its code."""
    if arch.startswith("gfx"):
        return read_amdgcn(compile_variant(variant, GPUTarget("hip", arch, 64)))
    options = count_device.launch_options(variant.classes)
    each = 32 * options["num_warps"] / options["block"]
    compiled = compile_variant(variant, GPUTarget("cuda", int(arch), 32))
    return read_ptx(compiled, each, words=True)


def variants(classes: list[int], *, every: bool) -> Iterator[Variant]:
    """Yield the usual form for each size; or, for the largest, rules and tensors of every kind."""
    for count in classes:
        plain = Variant(count)
        yield plain
        if every and count == max(classes):
            yield plain._replace(grad=False)
            yield plain._replace(r="1", observed=True)
            yield plain._replace(r="1", restore_prob=0.3, warmup=True)
            yield plain._replace(restore_prob=0.3, observed=True, warmup=True)
            for logits in ("fp16", "bf16"):
                yield plain._replace(logits=logits, targets="i1")


def main() -> None:
    """Print what was found."""
    given = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    given.add_argument("--arch", nargs="+", default=["80", "90"], help="80, 90 or gfx942")
    sizes = [16 << power for power in range(7)]
    given.add_argument("--classes", nargs="+", type=int, default=sizes)
    given.add_argument(
        "--all", action="store_true", help="every rule, mask and dtype, for the largest"
    )
    given.add_argument("--cache", help="where Triton keeps compiled code, if not at its own place")
    given.add_argument("--json", action="store_true", help="a line of JSON for each")
    options = given.parse_args()
    if options.cache:
        os.environ["TRITON_CACHE_DIR"] = options.cache
    for variant in variants(options.classes, every=options.all):
        for arch in options.arch:
            code, least = examine(variant, arch), variant.least_bytes()
            row = {**variant._asdict(), "arch": arch, **code._asdict(), "least": least}
            print(json.dumps(row) if options.json else f"{variant}\n  {arch}: {code}, {least}")


if __name__ == "__main__":
    main()
