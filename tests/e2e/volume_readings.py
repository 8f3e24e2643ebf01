"""Real series and their masks as SimpleITK reads them, for labels_export_volumes_test.py to hold exports against. SimpleITK is
large, so it is run by hand in an environment of its own: python3 volume_readings.py DATA > volume_readings.json"""
import hashlib
import json
import pathlib
import sys

import SimpleITK

SERIES = {"body": ("ct/totalsegmentator-body-j2k/dicom", "*", "ct/totalsegmentator-body-j2k/example_seg_dicom.nii.gz"),
          "liver": ("ct/seg-dcmqi", "0*.dcm", "ct/seg-dcmqi/liver_seg.nrrd"),
          "abdomen": ("ct/tcga-34-2605-abdomen-5mm", "1-2*.dcm", None)}


def reading(data, folder, files, mask):
    paths = sorted(map(str, (data / folder).glob(files)))
    positions = {}
    for path in paths:
        one = SimpleITK.ImageFileReader()
        one.SetFileName(path)
        one.ReadImageInformation()
        positions[path] = one.GetOrigin()[2]
    source = SimpleITK.ReadImage(sorted(paths, key=positions.get))
    said = {"folder": folder, "files": files, "mask": mask, "size": source.GetSize(), "spacing": source.GetSpacing(),
            "origin": source.GetOrigin(), "direction": source.GetDirection()}
    if mask:
        on_source = SimpleITK.Resample(SimpleITK.ReadImage(str(data / mask)), source, SimpleITK.Transform(),
                                       SimpleITK.sitkNearestNeighbor, 0, SimpleITK.sitkUInt8)
        said["voxels_sha256"] = hashlib.sha256(SimpleITK.GetArrayFromImage(on_source).tobytes()).hexdigest()
    return said


if __name__ == "__main__":
    of_all = {name: reading(pathlib.Path(sys.argv[1]), *row) for name, row in SERIES.items()}
    json.dump({"SimpleITK": SimpleITK.Version_VersionString(), "series": of_all}, sys.stdout, indent=1)
    print()
