"""The cost of a stream to a training loop: steps of a ResNet-50 on its batches, against as many steps on one cached batch.

    python3 torch_stream.py RUN.yaml [--device cuda] [--steps 60] [--warm-up 5]

The worker that `patchbay.attach` starts shares the GPU with this process, and its batches lie in the memory of the GPU. Each
step is waited for, as loops do that read their loss. One line of JSON on standard output; `gpu_busy_nvml` is what NVML counts
while the stream is trained on, sampled: the share of the time in which some kernel ran, of the worker or of the trainer. Exit
code 3 without torch, the device, or a build of the module for this Python.
"""
import argparse
import ctypes
import sys
import threading
import time

from torch_figures import TrainingStep, say, usable_torch

SAMPLE_S = 0.05


class BusyGpu(threading.Thread):
    """Samples NVML's utilisation of a GPU until it is told to end."""

    class Utilization(ctypes.Structure):
        _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]

    def __init__(self, uuid):
        super().__init__(daemon=True)
        self.samples, self.over, self.why_not = [], threading.Event(), None
        self.device = ctypes.c_void_p()
        try:
            self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
            self._take(self.nvml.nvmlInit_v2())
            self._take(self.nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}".encode(), ctypes.byref(self.device)))
            self._take(self._sample())
        except (OSError, AttributeError, RuntimeError) as error:
            self.why_not = str(error)

    @staticmethod
    def _take(code):
        if code != 0:
            raise RuntimeError(f"NVML: error {code}")

    def _sample(self):
        used = self.Utilization()
        code = self.nvml.nvmlDeviceGetUtilizationRates(self.device, ctypes.byref(used))
        if code == 0:
            self.samples.append(used.gpu)
        return code

    def run(self):
        while self.why_not is None and not self.over.wait(SAMPLE_S):
            self._sample()

    def figures(self):
        """Ends the sampling: what the line of JSON says of it."""
        self.over.set()
        self.join()
        if self.why_not is not None or not self.samples:
            return {"gpu_busy_nvml": None, "nvml": self.why_not or "no sample"}
        return {"gpu_busy_nvml": round(sum(self.samples) / len(self.samples) / 100, 4), "nvml_samples": len(self.samples)}


def uuid_of(torch, device):
    """The UUID of torch's device 0; "" for versions of torch that do not have it, and NVML is then not sampled."""
    return str(getattr(torch.cuda.get_device_properties(0), "uuid", "")) if device == "cuda" else ""


def endless(stream):
    while True:
        yield from stream


class Loop:
    """Steps that are waited for one by one, and how long they took."""

    def __init__(self, torch, device, step):
        self.wait = torch.cuda.synchronize if device == "cuda" else lambda: None
        self.step = step

    def cached(self, batch, steps):
        """Seconds of `steps` steps on one batch."""
        begun = time.perf_counter()
        for _ in range(steps):
            self.step(batch)
            self.wait()
        return time.perf_counter() - begun

    def streamed(self, torch, batches, steps):
        """(seconds of `steps` steps, seconds of them in which the loop waited for a batch)."""
        begun, waited = time.perf_counter(), 0.0
        for _ in range(steps):
            asked = time.perf_counter()
            image = torch.from_dlpack(next(batches)["image"])
            waited += time.perf_counter() - asked
            self.step(image)
            del image  # the slot goes back behind the step
            self.wait()
        return time.perf_counter() - begun, waited


def measure(torch, patchbay, asked):
    with patchbay.attach(asked.run, device=asked.device) as stream:
        batches = endless(stream)
        first = torch.from_dlpack(next(batches)["image"])
        cached = first.clone()
        del first
        loop = Loop(torch, asked.device, TrainingStep(torch, asked.device, cached.shape[0]))
        loop.cached(cached, asked.warm_up)
        loop.streamed(torch, batches, asked.warm_up)
        before = loop.cached(cached, asked.steps)
        busy = BusyGpu(uuid_of(torch, asked.device))
        busy.start()
        taken, waited = loop.streamed(torch, batches, asked.steps)
        nvml = busy.figures()
        after = loop.cached(cached, asked.steps)
    cached_s = (before + after) / 2
    say("ResNet-50 steps on a stream", ms=taken / asked.steps * 1e3, bytes=cached.numel() * cached.element_size(),
        patches=cached.shape[0], cached_ms=cached_s / asked.steps * 1e3, times_the_cached_step=taken / cached_s,
        stall=waited / taken, **nvml)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=5)
    asked = parser.parse_args()
    torch = usable_torch("torch_stream", asked.device)
    try:
        import patchbay
    except ImportError as error:
        print(f"torch_stream: no module for Python {sys.version.split()[0]}: {error}", file=sys.stderr)
        sys.exit(3)
    measure(torch, patchbay, asked)


if __name__ == "__main__":
    main()
