"""Trains a small 3-D U-Net to segment lesions in CT, with validation by Dice, checkpoints and resume. Runs alone or under
torchrun (gloo, CPU); about a minute on one core. The phantoms have tumours in the liver and polyps at the bowel's wall:

    echo path,patient_id,fold_0,annotation > colon.csv
    for i in 0 1 2 3 4 5 6 7; do
      patchbay synth ct p$i --size 32x64x64 --step 1.5 --pixel 1.4 --seed $i --lesions p$i.nii
      patchbay ingest p$i --out stores/p$i
      echo $(ls -d stores/p$i/*.ome.zarr),p$i,$([ $i -ge 6 ] && echo val || echo train),p$i.nii >> colon.csv
    done
    patchbay labels import colon.csv --set lesions --classes configs/classes/lesions.yaml
    python train_colorectal.py configs/examples/colorectal.yaml

Stop it whenever you like: it goes on from last.pt.
"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import patchbay

CLASSES = ("background", "tumour", "polyp")
IGNORE = 255
LEARNING_RATE = 1e-2


def block(channels_in, channels):
    return torch.nn.Sequential(
        torch.nn.Conv3d(channels_in, channels, 3, padding=1), torch.nn.BatchNorm3d(channels),
        torch.nn.LeakyReLU(0.01), torch.nn.Conv3d(channels, channels, 3, padding=1),
        torch.nn.BatchNorm3d(channels), torch.nn.LeakyReLU(0.01))


class UNet(torch.nn.Module):
    """Logits of every class for every voxel; the sides of a patch are multiples of 4."""

    def __init__(self, width=8):
        super().__init__()
        self.down = torch.nn.ModuleList([block(1, width), block(width, 2 * width)])
        self.bottom = block(2 * width, 4 * width)
        self.up = torch.nn.ModuleList([block(6 * width, 2 * width), block(3 * width, width)])
        self.head = torch.nn.Conv3d(width, len(CLASSES), 1)
        with torch.no_grad():
            self.head.bias.zero_()[0] = 4  # nearly all voxels are background: not the first thing to learn

    def forward(self, x):
        kept = []
        for part in self.down:
            x = part(x)
            kept.append(x)
            x = F.max_pool3d(x, 2)
        x = self.bottom(x)
        for part in self.up:
            x = F.interpolate(x, scale_factor=2, mode="trilinear", align_corners=False)
            x = part(torch.cat([x, kept.pop()], 1))
        return self.head(x)


def overlap(probabilities, mask):
    """Per lesion class: what both have, and what either has, over voxels that are not ignored."""
    known = (mask != IGNORE).unsqueeze(1)
    truth = F.one_hot(mask.clamp(max=len(CLASSES) - 1), len(CLASSES)).permute(0, 4, 1, 2, 3) * known
    probabilities = probabilities * known
    sums = (0, 2, 3, 4)
    return (2 * (probabilities * truth).sum(sums))[1:], (probabilities.sum(sums) + truth.sum(sums))[1:]


def loss_of(model, x, mask):
    """Cross entropy and soft Dice."""
    logits = model(x)
    shared, either = overlap(logits.softmax(1), mask)
    return F.cross_entropy(logits, mask, ignore_index=IGNORE) + 1 - ((shared + 1) / (either + 1)).mean()


def tensors_of(batch):
    """(images, masks) of a batch, padding left out."""
    keep = torch.from_dlpack(batch["ordinal"]) >= 0
    return torch.from_dlpack(batch["image"])[keep].float(), torch.from_dlpack(batch["mask"])[keep].long()


def validate(model, stream):
    """Dice of each lesion class over all voxels of the split."""
    shared, either = torch.zeros(len(CLASSES) - 1), torch.zeros(len(CLASSES) - 1)
    model.eval()
    with torch.no_grad():
        for batch in stream:
            x, mask = tensors_of(batch)
            found = F.one_hot(model(x).argmax(1), len(CLASSES)).permute(0, 4, 1, 2, 3).float()
            both, any_of = overlap(found, mask)
            shared, either = shared + both, either + any_of
    model.train()
    return (shared / either.clamp(min=1)).tolist()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0, help="of the network's first weights")
    parser.add_argument("--checkpoint", default="last.pt")
    parser.add_argument("--save-every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--cpus", type=int, help="CPU workers of an embedded cluster")
    return parser.parse_args()


def save(path, net, optimiser, train, step):
    torch.save({"model": net.state_dict(), "optimiser": optimiser.state_dict(), "data": train.state_dict(), "step": step},
               path + ".partial")
    os.replace(path + ".partial", path)


def main():
    args = arguments()
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        dist.init_process_group("gloo")
    first = int(os.environ.get("RANK", "0")) == 0
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    net = UNet()
    optimiser = torch.optim.AdamW(net.parameters(), LEARNING_RATE)
    last = torch.load(args.checkpoint) if os.path.exists(args.checkpoint) else None
    train = patchbay.attach(args.config, split="train", state=last and last["data"], cpus=args.cpus)
    val = patchbay.attach(args.config, split="val", cpus=args.cpus)
    step = 0
    if last:
        net.load_state_dict(last["model"])
        optimiser.load_state_dict(last["optimiser"])
        step = last["step"]
    model = torch.nn.parallel.DistributedDataParallel(net) if ranks > 1 else net
    while train.epoch < args.epochs:
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * (1 - train.epoch / args.epochs) ** 0.9
        for batch in train:
            loss = loss_of(model, *tensors_of(batch))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
            if step % args.save_every == 0 and first:
                save(args.checkpoint, net, optimiser, train, step)
        dice = validate(net, val)
        if first:
            figures = " ".join(f"{name} {value:.3f}" for name, value in zip(CLASSES[1:], dice))
            print(f"epoch {train.epoch} step {step} loss {loss.item():.4f} dice {figures}", flush=True)
            save(args.checkpoint, net, optimiser, train, step)
    train.close()
    val.close()
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
