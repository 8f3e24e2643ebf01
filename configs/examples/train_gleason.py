"""Trains a small model on patches of a slide: a class head and a segmentation head, with validation, checkpoints and
resume. Runs alone or under torchrun (gloo, CPU); about a minute on two cores.

    patchbay synth slide slide.svs --size 4000x3000
    patchbay ingest slide.svs --out stores
    python train_gleason.py configs/examples/gleason.yaml --epochs 2
    torchrun --nproc-per-node 2 train_gleason.py configs/examples/gleason.yaml --epochs 2

The labels are synthetic: the class is whether a patch is darker than the average, the mask is which of its pixels are.
Stop it whenever you like: it goes on from last.pt.
"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import patchbay
from patchbay.torch import FeedLog


class Net(torch.nn.Module):
    """Logits of two classes for the patch and for each pixel."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(),
                                        torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.ReLU())
        self.pixel, self.patch = torch.nn.Conv2d(8, 2, 1), torch.nn.Linear(8, 2)

    def forward(self, x):
        features = self.body(x)
        return self.patch(features.mean((2, 3))), self.pixel(features)


def labels_of(x):
    """(class, mask) of normalised patches, by their brightness."""
    grey = x.mean(1)
    return (grey.mean((1, 2)) < 0).long(), (grey < 0).long()


def loss_of(model, x):
    label, mask = labels_of(x)
    patch, pixel = model(x)
    return F.cross_entropy(patch, label) + F.cross_entropy(pixel, mask), patch, pixel, label, mask


def validate(model, stream):
    """Accuracy over patches and pixels, padding left out; and the patches' by cohort (the slide they come from)."""
    right, pixels, patches, cohorts = 0, 0.0, 0, {}
    with torch.no_grad():
        for batch in stream:
            keep = torch.from_dlpack(batch["ordinal"]) >= 0
            x = torch.from_dlpack(batch["image"]).float()
            _, patch, pixel, label, mask = loss_of(model, x)
            hits = (patch.argmax(1) == label)
            right, patches = right + int(hits[keep].sum()), patches + int(keep.sum())
            pixels += float((pixel.argmax(1) == mask)[keep].float().mean((1, 2)).sum())
            for i, hit in zip(batch["image_index"], hits.tolist()):
                if i >= 0:
                    cohorts.setdefault(stream.images[i]["slide_id"], []).append(hit)
    return right / patches, pixels / patches, {name: sum(hits) / len(hits) for name, hits in cohorts.items()}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--checkpoint", default="last.pt")
    parser.add_argument("--save-every", type=int, default=20, help="steps between checkpoints")
    parser.add_argument("--log", default="feed.jsonl", help="JSON lines of throughput and waiting")
    parser.add_argument("--cpus", type=int, help="CPU workers of an embedded cluster")
    return parser.parse_args()


def save(path, model, optimiser, train, step):
    torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "data": train.state_dict(), "step": step},
               path + ".partial")
    os.replace(path + ".partial", path)


def main():
    args = arguments()
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        dist.init_process_group("gloo")
    first = int(os.environ.get("RANK", "0")) == 0
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    optimiser = torch.optim.AdamW(net.parameters(), 1e-2)
    last = torch.load(args.checkpoint) if os.path.exists(args.checkpoint) else None
    train = patchbay.attach(args.config, state=last and last["data"], cpus=args.cpus)
    val = patchbay.attach(args.config, cpus=args.cpus, overrides={"sampling.order": "sequential", "batch.tail": "pad",
                                                                  "augment": []})
    step = 0
    if last:
        net.load_state_dict(last["model"])
        optimiser.load_state_dict(last["optimiser"])
        step = last["step"]
    model = torch.nn.parallel.DistributedDataParallel(net) if ranks > 1 else net
    feed = FeedLog(train, args.log, every_s=2.0)
    while train.epoch < args.epochs:
        for batch in train:
            loss, *_ = loss_of(model, torch.from_dlpack(batch["image"]).float())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
            if first:
                feed(step)
            if step % args.save_every == 0 and first:
                save(args.checkpoint, net, optimiser, train, step)
        accuracy, pixels, cohorts = validate(net, val)
        if first:
            print(f"epoch {train.epoch} step {step} loss {loss.item():.4f} class accuracy {accuracy:.3f} "
                  f"pixel accuracy {pixels:.3f} by cohort {cohorts}", flush=True)
            save(args.checkpoint, net, optimiser, train, step)
    if first:
        figures = feed.log(step)
        print(f"waited {100 * figures['stall_fraction']:.1f} % of the time", flush=True)
    train.close()
    val.close()
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
