"""Volumes that are made here, by nnU-Net, MONAI and TorchIO, for volume_peers_test.py to hold patches and stores against. The three are
large, so this is run by hand in an environment that has them: PATCHBAY_BIN=. python3 volume_peer_readings.py > volume_peer_readings.json"""
import base64
import importlib.metadata
import json
import math
import pathlib
import sys
import tempfile

STEP = 2e-4  # values are kept in these, as int16

# Millimetres asked for along z, y, x, the order of the axes that are not apart, and of each volume size and millimetres.
RESAMPLED = {"cubic": ((1.4, 1.1, 1.1), 3, {"together": ((6, 8, 7), (2, 1.5, 1.5)), "coarser": ((13, 15, 14), (1, 0.8, 0.8)),
                                            "apart": ((3, 13, 12), (4.4, 0.9, 0.9)), "apart-along-x": ((14, 13, 3), (0.9, 0.9, 3.6))}),
             "linear": ((3, 0.7, 0.7), 1, {"thick": ((6, 14, 7), (5, 0.9, 0.9)), "apart-by-the-new": ((19, 13, 6), (1.5, 0.97, 1.05))})}
CASE_SIZE, CASE_SPACING = (6, 12, 10), (3, 1.2, 0.9)
PERCENTILES = (2, 97.5)


def deviation(z, y, x):
    """A float volume of about one deviation, with an edge that cubic splines overshoot."""
    return (2.5 if y > x + 2 else 0) + math.sin(2.1 * z + 0.7 * x) + 0.6 * math.cos(1.3 * y - 0.4 * z * x) - 0.8


def whole(channel, z, y, x):
    """An MR of whole numbers, none of them 0."""
    return 40 + 30 * channel + (53 * z + 17 * y * (channel + 1) + 29 * x + 7 * y * x) % (211 + 600 * channel)


def sparse(z, y, x):
    """An MR that is 0 in a part."""
    return 0 if (z + 2 * y + x) % 4 == 0 else whole(1, z, y, x)


def marked(z, y, x):
    """A mask of two classes."""
    return (z + y) % 3 if x > 4 else 0


def packed(values):
    """int16 in steps of STEP, by base64."""
    import numpy
    steps = numpy.rint(numpy.asarray(values, numpy.float64) / STEP)
    assert abs(steps).max() < 2 ** 15
    return {"shape": steps.shape, "steps": base64.b64encode(steps.astype("<i2").tobytes()).decode()}


def resampled(size, spacing, wanted, order):
    """nnU-Net's default resampling of data, as plans have it, in float32."""
    import numpy
    from nnunetv2.preprocessing.resampling.default_resampling import compute_new_shape, resample_data_or_seg_to_shape
    data = numpy.array([[[deviation(z, y, x) for x in range(size[2])] for y in range(size[1])] for z in range(size[0])], numpy.float32)[None]
    return resample_data_or_seg_to_shape(data, compute_new_shape(size, spacing, wanted), spacing, wanted, is_seg=False, order=order,
                                         order_z=0, force_separate_z=None)[0]


def preprocessed():
    """Two channels of one case at their own spacing, read from NIfTI."""
    import harness
    from nnunetv2.preprocessing.preprocessors.default_preprocessor import DefaultPreprocessor
    from nnunetv2.utilities.plans_handling.plans_handler import PlansManager
    resample = {"is_seg": False, "order": 3, "order_z": 0, "force_separate_z": None}
    plans = PlansManager({
        "dataset_name": "Dataset001_made", "plans_name": "nnUNetPlans", "image_reader_writer": "SimpleITKIO",
        "transpose_forward": [0, 1, 2], "transpose_backward": [0, 1, 2], "label_manager": "LabelManager",
        "foreground_intensity_properties_per_channel": {"0": {}, "1": {}},
        "configurations": {"3d_fullres": {"architecture": {},
            "spacing": CASE_SPACING, "normalization_schemes": ["ZScoreNormalization"] * 2, "use_mask_for_norm": [False] * 2,
            "resampling_fn_data": "resample_data_or_seg_to_shape", "resampling_fn_data_kwargs": resample,
            "resampling_fn_seg": "resample_data_or_seg_to_shape", "resampling_fn_seg_kwargs": {**resample, "is_seg": True, "order": 1}}}})
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / f"case_000{channel}.nii" for channel in (0, 1)]
        for channel, file in enumerate(files):
            harness.nifti(file, CASE_SIZE, CASE_SPACING, lambda z, y, x, of=channel: whole(of, z, y, x))
        return DefaultPreprocessor(verbose=False).run_case(list(map(str, files)), None, plans, plans.get_configuration("3d_fullres"), {})[0]


def normalised():
    """The volume `sparse` by MONAI, by the name of its transform, and by TorchIO below the mask."""
    import monai.transforms
    import numpy
    import torch
    import torchio
    array = lambda value: numpy.array([[[value(z, y, x) for x in range(CASE_SIZE[2])] for y in range(CASE_SIZE[1])] for z in range(CASE_SIZE[0])],
                                      numpy.float32)[None]
    subject = torchio.Subject(image=torchio.ScalarImage(tensor=torch.from_numpy(array(sparse))),
                              mask=torchio.LabelMap(tensor=torch.from_numpy(array(marked) > 0)))
    return {"NormalizeIntensity": monai.transforms.NormalizeIntensity(nonzero=True)(array(sparse))[0],
            "ScaleIntensityRangePercentiles": monai.transforms.ScaleIntensityRangePercentiles(*PERCENTILES, 0, 1, clip=True)(array(sparse))[0],
            "ZNormalization": torchio.ZNormalization(masking_method="mask")(subject).image.data[0]}


if __name__ == "__main__":
    packages = ("nnunetv2", "scikit-image", "scipy", "numpy", "SimpleITK", "monai", "torchio", "torch")
    json.dump({"versions": {name: importlib.metadata.version(name) for name in packages},
               "normalised": {name: packed(values) for name, values in normalised().items()},
               "preprocessed": packed(preprocessed()),
               "resampled": {name: packed(resampled(*volume, wanted, order)) for wanted, order, volumes in RESAMPLED.values()
                             for name, volume in volumes.items()}}, sys.stdout, indent=1)
    print()
