"""Patchbay as the others are measured: its Python module, batches as torch tensors in the trainer's process."""
from .common import MEAN, SEED, STD, WINDOW, loader

SLIDES = """dataset: {dataset}
seed: {seed}
patch: {{size: [512, 512], level: 0}}
sampling: {{order: shuffled, positions: {positions}}}
batch: {{global_size: {batch}, dtype: float32, layout: nchw, prefetch: 2, tail: drop}}
preprocess: [{{normalize: {{scale: 255, mean: {mean}, std: {std}}}}}]
augment: [{{flip: {{}}}}]
"""
VOLUMES = """dataset: {dataset}
seed: {seed}
patch: {{size: [96, 96, 96], fill: -1024}}
labels: {{set: lesions, mask: true}}
sampling: {{positions: random, patches_per_epoch: 100000, oversample_foreground: 0.33}}
batch: {{global_size: {batch}, dtype: float32, tail: drop}}
preprocess: [{{window: {{range: {window}}}}}, {{zscore: {{over: body}}}}]
augment:
  - flip: {{axes: [z, y, x]}}
"""
# nnU-Net's transforms at its probabilities: it turns a fifth of the patches and scales a fifth, each by itself.
FULL = """  - affine: {p: 0.36, degrees: [-30, 30], scale: [0.7, 1.4]}
  - gaussian_noise: {p: 0.1, std: [0, 0.1]}
  - gaussian_blur: {p: 0.1, sigma: [0.5, 1.0]}
  - brightness: {p: 0.15, factor: [0.75, 1.25]}
  - contrast: {p: 0.15, factor: [0.75, 1.25]}
  - low_resolution: {p: 0.125, zoom: [0.5, 1.0]}
  - gamma: {p: 0.1, gamma: [0.7, 1.5], retain_stats: true, invert: true}
  - gamma: {p: 0.3, gamma: [0.7, 1.5], retain_stats: true}
"""


def images_of(job, text):
    """The batches' images, epoch after epoch."""
    import torch

    import patchbay
    config = job.below("run.yaml")
    config.write_text(text)
    with patchbay.attach(config, cpus=job.workers) as stream:
        while True:
            for batch in stream:
                yield torch.from_dlpack(batch["image"])


def patches_of(job, dataset):
    return images_of(job, SLIDES.format(dataset=dataset, seed=SEED, batch=job.batch, mean=list(MEAN), std=list(STD),
                                        positions="random" if job.random_places else "grid"))


@loader("patchbay-slide", "slide", "patchbay torch", "a stream of the slide, no store")
def patchbay_slide(job):
    return patches_of(job, job.slide)


@loader("patchbay-store", "store", "patchbay torch", "a stream of the store")
def patchbay_store(job):
    return patches_of(job, job.store)


def boxes_of(job, more):
    text = VOLUMES.format(dataset=job.below("table.csv"), seed=SEED, batch=job.boxes_batch, window=list(WINDOW))
    return images_of(job, text + more)


@loader("patchbay-ct", "volumes", "patchbay torch", "a stream of the volumes' stores with labels: window, z-score, flips")
def patchbay_ct(job):
    return boxes_of(job, "")


@loader("patchbay-ct-full", "volumes-full", "patchbay torch", "the same with nnU-Net's transforms at its probabilities")
def patchbay_ct_full(job):
    return boxes_of(job, FULL)
