"""Times of PyTorch and Kornia on a GPU for the work that patchbay-bench-gpu measures, and of a ResNet-50 step.

    python3 torch_figures.py [--device cuda] [--patches 256] [--side 512] [--step-batch 32] [--rounds 9]

One line of JSON per figure, on standard output; what could not be measured has "not_measured" instead of "ms". Chains go from
uint8 pixels on the device to float16 planes, with Kornia's ops as they come and as one function that torch.compile made.
Stains and HED are not in Kornia: both forms do them as one 3x3 in optical density. Exit code 3 without torch or the device.
"""
import argparse
import json
import statistics
import sys
import time

MEAN, STD = (0.70, 0.55, 0.70), (0.2, 0.2, 0.2)
MIXED = ((0.93, 0.05, 0.02), (0.04, 0.95, 0.03), (0.02, 0.03, 0.96))  # some map of optical densities
BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # stages of ResNet-50: width, number of blocks, stride of the first


def say(what, **figures):
    print(json.dumps({"what": what, **figures}), flush=True)


def seconds(torch, device, work, rounds):
    """The median of rounds of one call; one before warms up."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    taken = []
    for _ in range(rounds + 1):
        wait()
        begun = time.perf_counter()
        work()
        wait()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[1:])


def planes(pixels):
    return pixels.permute(0, 3, 1, 2).float() / 255


def light_chain(torch, kornia):
    ops = kornia.augmentation
    flips = torch.nn.Sequential(ops.RandomHorizontalFlip(p=0.5), ops.RandomVerticalFlip(p=0.5))
    normalize = ops.Normalize(torch.tensor(MEAN), torch.tensor(STD))

    def chain(pixels):
        image = flips(planes(pixels))
        return normalize(torch.rot90(image, 1, (2, 3)).contiguous()).half()

    return chain


def full_chain(torch, kornia, elastic_and_noise=False):
    affine = kornia.augmentation.RandomAffine(degrees=15.0, scale=(0.9, 1.1), padding_mode="reflection", p=1.0)
    normalize = kornia.augmentation.Normalize(torch.tensor(MEAN), torch.tensor(STD))

    def chain(pixels):
        image = affine(planes(pixels))
        if elastic_and_noise:
            count, _, height, width = image.shape
            bend = torch.nn.functional.interpolate(
                torch.rand(count, 2, 8, 8, device=image.device) * 2 - 1, (height, width), mode="bicubic", align_corners=True)
            rows, columns = torch.meshgrid(torch.linspace(-1, 1, height, device=image.device),
                                           torch.linspace(-1, 1, width, device=image.device), indexing="ij")
            grid = torch.stack((columns, rows), -1) + bend.permute(0, 2, 3, 1) * (20 / max(width, height))
            image = torch.nn.functional.grid_sample(image, grid, padding_mode="reflection", align_corners=True)
        density = -torch.log(image.clamp(1 / 255, 1))
        mixed = torch.tensor(MIXED, device=image.device) * (0.95 + 0.1 * torch.rand(3, 3, device=image.device))
        image = torch.exp(-torch.einsum("ij,bjhw->bihw", mixed, density)).clamp(0, 1)
        if elastic_and_noise:
            image = image + 0.015 * torch.randn_like(image)
        return normalize(image).half()

    return chain


def measure_chains(torch, kornia, asked):
    pixels = torch.randint(0, 256, (asked.patches, asked.side, asked.side, 3), dtype=torch.uint8, device=asked.device)
    chains = {"light": light_chain(torch, kornia), "full": full_chain(torch, kornia),
              "full with elastic and noise": full_chain(torch, kornia, elastic_and_noise=True)}
    for name, chain in chains.items():
        for form in ("eager", "torch.compile"):
            what = f"kornia {kornia.__version__}, {name}, {form}"
            try:
                if form != "eager" and not hasattr(torch, "compile"):
                    raise RuntimeError(f"torch {torch.__version__} has no torch.compile")
                work = chain if form == "eager" else torch.compile(chain)
                made = work(pixels)
                assert made.dtype == torch.float16 and tuple(made.shape) == (asked.patches, 3, asked.side, asked.side)
                taken = seconds(torch, asked.device, lambda work=work: work(pixels), asked.rounds)
                say(what, ms=taken * 1e3, bytes=pixels.numel() * 3, patches=asked.patches)
            except Exception as error:  # the machine's version of torch may lack something: the others go on
                say(what, not_measured=f"{type(error).__name__}: {str(error)[:300]}")


def bottleneck(torch, channels, width, stride):
    """(main path, shortcut) of one block."""
    nn = torch.nn
    main = nn.Sequential(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                         nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                         nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
    short = nn.Identity() if channels == 4 * width and stride == 1 else nn.Sequential(
        nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
    return main, short


def resnet50(torch, classes=1000):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels, width, stride):
            super().__init__()
            self.main, self.short = bottleneck(torch, channels, width, stride)

        def forward(self, x):
            return nn.functional.relu(self.main(x) + self.short(x))

    layers, channels = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                        nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in BLOCKS:
        for i in range(count):
            layers.append(Block(channels, width, stride if i == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class TrainingStep:
    """Training steps of a ResNet-50, in bfloat16 on a GPU: call it with a batch (N, 3, H, W) on the device."""

    def __init__(self, torch, device, batch_size):
        self.torch, self.device = torch, device
        self.model = resnet50(torch).to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.target = torch.randint(0, 1000, (batch_size,), device=device)

    def __call__(self, batch):
        torch = self.torch
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):  # a CPU may emulate it
            image = batch.float().contiguous(memory_format=torch.channels_last)
            loss = torch.nn.functional.cross_entropy(self.model(image), self.target)
        loss.backward()
        self.optimizer.step()


def measure_step(torch, asked):
    """A training step of ResNet-50 on one cached batch."""
    step = TrainingStep(torch, asked.device, asked.step_batch)
    batch = torch.rand(asked.step_batch, 3, asked.side, asked.side, device=asked.device).half()
    taken = seconds(torch, asked.device, lambda: step(batch), asked.rounds) * 1e3
    say("ResNet-50 step on a cached batch", ms=taken, step_ms=taken, bytes=batch.numel() * 2, patches=asked.step_batch,
        parameters=sum(parameter.numel() for parameter in step.model.parameters()))


def usable_torch(program, device):
    """torch; exit code 3 where this Python has none, or it finds no such device."""
    try:
        import torch
    except ImportError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(3)
    if device == "cuda" and not torch.cuda.is_available():
        print(f"{program}: torch {torch.__version__} finds no CUDA device", file=sys.stderr)
        sys.exit(3)
    return torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--patches", type=int, default=256)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--step-batch", type=int, default=32, help="0: no training step")
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    torch = usable_torch("torch_figures", asked.device)
    say("torch", version=torch.__version__, device=torch.cuda.get_device_name() if asked.device == "cuda" else "cpu")
    if asked.step_batch:
        measure_step(torch, asked)
    try:
        import kornia
    except ImportError as error:
        say("kornia", not_measured=str(error))
        return
    measure_chains(torch, kornia, asked)


if __name__ == "__main__":
    main()
