"""Losses that remember single pairs: what they need, say and keep."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses import Loss, build
from hilltop.losses.memory import pack_bits, unpack_bits
from tests.losses.conftest import REMEMBERING, batch, label_stats


def test_bits_come_back_as_they_were_packed() -> None:
    for classes in (1, 7, 8, 9, 80):
        bits = torch.rand(5, classes) < 0.5
        packed = pack_bits(bits)
        assert packed.shape == (5, math.ceil(classes / 8))
        assert torch.equal(unpack_bits(packed, classes), bits)


@pytest.mark.parametrize("name", REMEMBERING)
class TestMemory:
    """What losses with a memory say when something is missing."""

    def test_a_loss_that_was_not_prepared_says_so(self, name: str) -> None:
        with pytest.raises(ArgumentError, match=f"{name} remembers every image: call prepare"):
            build(name)(*batch())

    def test_a_batch_without_row_numbers_is_refused(self, name: str) -> None:
        with pytest.raises(ArgumentError, match=f"{name} remembers every image: pass index="):
            self.prepared(name)(*batch())

    def test_row_numbers_must_fit(self, name: str) -> None:
        loss, pair = self.prepared(name), batch()
        with pytest.raises(ArgumentError, match=r"each image of logits, \(7,\), but got.*\(6,\)"):
            loss(*pair, index=torch.arange(6))
        with pytest.raises(ArgumentError, match=r"between 0 and 19, because .* but got 26"):
            loss(*pair, index=torch.arange(20, 27))
        with pytest.raises(ArgumentError, match="but got -1"):
            loss(*pair, index=torch.arange(-1, 6))
        with pytest.raises(ArgumentTypeError, match=r"whole numbers, but got torch\.float32"):
            loss(*pair, index=torch.arange(7.0))
        with pytest.raises(ArgumentError, match="prepared for 5 classes, but logits has 6"):
            loss(*batch(7, 6), index=torch.arange(7))

    def test_the_memory_is_stated(self, name: str) -> None:
        loss = build(name)
        assert loss.describe() is None
        loss.prepare(label_stats(80, images=1000))
        size = {"ll_cp": "14.0 kB", "em_apl": "160.0 kB", "role": "320.0 kB"}[name]
        assert f"1,000 images x 80 classes: {size}" in loss.describe()

    def test_the_memory_is_in_the_state(self, name: str) -> None:
        loss, other = self.prepared(name), self.prepared(name)
        index = torch.arange(7)
        learned = list(loss.parameters())
        optimizer = torch.optim.SGD(learned, 1.0) if learned else None
        for epoch in range(8):
            loss.set_epoch(epoch)
            loss(batch()[0].requires_grad_(), batch()[1], index=index).backward()
            if optimizer is not None:
                optimizer.step()
        other.load_state_dict(copy.deepcopy(loss.state_dict()))
        pairs = [each.eval()(*batch(), index=index) for each in (loss, other)]
        torch.testing.assert_close(*pairs)
        fresh = self.prepared(name)
        fresh.set_epoch(7)
        assert not torch.allclose(fresh.eval()(*batch(), index=index), pairs[0])

    @staticmethod
    def prepared(name: str) -> Loss:
        loss = build(name)
        loss.prepare(label_stats(5, images=20))
        return loss
