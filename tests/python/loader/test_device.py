"""device=: how long batches are held, with a stand-in for torch.cuda; no GPU is asked for."""

from typing import Any

import pytest

import millrace

torch = pytest.importorskip("torch")


class Cuda:
    """What DeviceFeed uses of torch.cuda. Events are reached when somebody waits for them."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.registered: dict[int, int] = {}

    def Stream(self, device: Any) -> Any:
        return self

    def stream(self, stream: Any) -> Any:
        return self

    def current_stream(self, device: Any) -> Any:
        return self

    def __enter__(self) -> None:
        self.log.append("copy")

    def __exit__(self, *unused: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        self.log.append("order")

    def Event(self) -> Any:
        cuda = self

        class Event:
            def record(self, stream: Any) -> None:
                cuda.log.append("record")

            def synchronize(self) -> None:
                cuda.log.append("wait")

        return Event()

    def cudart(self) -> Any:
        return self

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:
        self.registered[address] = size
        return 0

    def cudaHostUnregister(self, address: int) -> int:
        del self.registered[address]
        return 0


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    stand_in = Cuda()
    monkeypatch.setattr(torch, "cuda", stand_in)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, device, non_blocking: self.clone())
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: None)
    return stand_in


def test_batches_arrive_in_order_and_are_held_until_copied(dataset: millrace.Dataset, cuda: Cuda) -> None:
    options: dict[str, Any] = {"view": millrace.Square(16), "array": "torch"}
    loader = dataset.loader("train", 16, device="cuda:0", **options)
    expected = list(dataset.loader("train", 16, **options))
    seen = []
    for n, (image, label) in enumerate(loader):
        seen.append((image, label))
        assert loader.state_dict()["position"] == (16 * (n + 1) if n < 5 else 0)  # not what is only copied ahead
    assert all((a == c).all() and (b == d).all() for (a, b), (c, d) in zip(seen, expected, strict=True))
    assert cuda.log.count("copy") == cuda.log.count("record") == cuda.log.count("order") == cuda.log.count("wait") == 6
    for n in range(2, 6):  # before the third copy begins, the first has been waited for
        begun = [i for i, word in enumerate(cuda.log) if word == "copy"][n]
        assert cuda.log[:begun].count("wait") >= n - 1
    assert 0 < len(cuda.registered) <= 4  # prefetch + 2 slabs
    del loader
    import gc

    gc.collect()
    assert not cuda.registered


def test_what_cannot_be_copied(dataset: millrace.Dataset, cuda: Cuda) -> None:
    wrong: tuple[dict[str, Any], ...] = ({"array": "numpy"}, {"array": "torch", "output": "encoded"})
    for options in wrong:
        with pytest.raises(millrace.MisuseError, match="device"):
            dataset.loader("train", 16, device="cuda", **options)
    with pytest.raises(millrace.MisuseError, match="not a CUDA device"):
        dataset.loader("train", 16, device="cpu", array="torch")
