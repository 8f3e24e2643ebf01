"""The shares of a stream's time: the trainer, and the worker stages that it waited for."""


def of(stages_s, made, batches, patches, wait_fraction, trainer_s):
    """{stage: {"fraction", "s_per_batch"}} of some span of a stream, the stage "trainer" last.

    stages_s: seconds of the workers in each stage, over `made` patches; batches, patches: what the trainer took;
    wait_fraction: of its time; trainer_s: the rest of its time. The wait is divided as the workers' seconds were.
    """
    total = sum(stages_s.values())
    batch_patches = patches / batches if batches else 0.0
    shares = {name: {"fraction": wait_fraction * seconds / total if total else 0.0,
                     "s_per_batch": seconds / made * batch_patches if made else 0.0}
              for name, seconds in stages_s.items()}
    shares["trainer"] = {"fraction": 1.0 - wait_fraction if trainer_s > 0 else 0.0,
                         "s_per_batch": trainer_s / batches if batches else 0.0}
    return shares
