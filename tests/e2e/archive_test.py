"""From an archive to patches, by the commands that a table joins: CT as LIDC-IDRI has it with structures, a series that is repaired, MR, PET,
two sequences of one patient, and MetaImage in two files. Patches and masks are those of formulas that are written down here again."""
import csv
import itertools
import json
import pathlib
import struct

import dicom_files
import harness
from mr_pet_test import pet, suv
from structures_test import is_in, structure_set

SIZE = (4, 6, 5)
TUBE = {**dicom_files.rescale(1, -1000), 0x00180060: ("DS", 120)}
# In voxels of the series: a square with a hole, in the slices 1 and 2.
OUTLINES = [[(0.2, 0.7), (4.3, 0.6), (4.4, 4.8), (0.3, 4.7)], [(1.6, 1.8), (2.7, 1.7), (2.6, 3.2), (1.7, 3.3)]]
CLASSES = "classes: [{name: background, value: 0}, {name: organ, value: 1}]\nexhaustive: true\nbackground: background\n"
RUN = """dataset: t.csv
stores: stores
where: {{kind: [{kinds}]}}
numerics: cpu
patch: {{size: [2, 3, 5], fill: 0}}
sampling: {{positions: grid, order: sequential}}
batch: {{global_size: 1, dtype: float32, meta: true}}
{more}"""


def line(slope, offset):
    """A slice of every place, by its stored values."""
    return lambda z, y, x: slope * dicom_files.stored(z)[y * SIZE[2] + x] + offset


# The values of each kind of image.
VALUES = {"lidc": line(1, -1000), "repaired": line(1, -1000), "mr": line(2.5, 7), "mhd": lambda z, y, x: 100 * z + 10 * y + x - 300,
          "pet": line(0.5 * suv("20240301091530.25", "20240301081500.0"), 0)}
FLOAT = ("mr", "pet")


class Archive(harness.Case):
    def make(self):
        root = self.folder / "archive"
        dicom_files.single(root / "lidc", "CT", 1, per_slice=lambda k: {0x00200052: ("UI", f"1.2.7.{k}")}, elements=TUBE)
        dicom_files.single(root / "repaired", "CT", 2, elements={**TUBE, 0x00281054: ("LO", "US"), 0x00080016: ("UI", "1.2.840.10008.5.1.4.1.1.7")})
        dicom_files.single(root / "mr", "MR", 3, elements=dicom_files.rescale(2.5, 7))
        dicom_files.single(root / "pet", "PT", 4, elements={**pet(), **dicom_files.rescale(0.5, 0)})
        dicom_files.single(root / "t1", "MR", 5)
        dicom_files.single(root / "t2", "MR", 6, elements=dicom_files.rescale(2, 1))
        (root / "v.mhd").write_text("ObjectType = Image\nNDims = 3\nDimSize = 5 6 4\nElementSpacing = 2 2 3\nTransformMatrix = 1 0 0 0 1 0 0 0 1\n"
                                    "Offset = 0 0 0\nElementType = MET_SHORT\nElementByteOrderMSB = False\nElementDataFile = v.raw\n")
        (root / "v.raw").write_bytes(b"".join(struct.pack("<h", VALUES["mhd"](z, y, x))
                                              for z in range(SIZE[0]) for y in range(SIZE[1]) for x in range(SIZE[2])))
        contours = []
        for z in (1, 2):
            for outline in OUTLINES:
                text = "\\".join(f"{mm:.3f}" for x, y in outline for mm in (-10 + 2 * x, -12 + 2 * y, 3 * z))
                contours.append({0x30060042: ("CS", "CLOSED_PLANAR"), 0x30060046: ("IS", 4), 0x30060050: ("DS", text)})
        structure_set(root / "plan.dcm", {"organ": contours}, frame="1.2.7.0")

    def table(self):
        """The table of the scan, filled in."""
        with open(self.folder / "t.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["kind"] = pathlib.Path(row["path"].split("#")[0]).name.split(".")[0]
            row.update(annotation="", image_id="", channel="")
        kinds = {row["kind"]: row for row in rows}
        self.assertEqual(set(kinds), {*VALUES, "v", "t1", "t2"} - {"mhd"})
        self.assertEqual({kind: row["verdict"] for kind, row in kinds.items() if row["verdict"] != "uniform"}, {"repaired": "not-a-volume"})
        kinds["lidc"]["annotation"] = "archive/plan.dcm"
        kinds["repaired"].update(repair="secondary-capture,rescale", modality="CT")
        kinds["v"].update(modality="CT", kind="mhd")
        for channel in ("t1", "t2"):
            kinds[channel].update(image_id="brain", channel=channel)
        with open(self.folder / "t.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
        return [row["kind"] for row in rows if row["kind"] in VALUES]

    def streamed(self, name, text, array="image", form="f"):
        """{index of the image: {place: values of the patch at it}} of a run."""
        run = self.folder / f"{name}.yaml"
        run.write_text(text, encoding="utf-8")
        self.json("stream", run, "--digest", "--gpus", "none", "--cpus", 1, "--save", name)
        images = {}
        for file in sorted((self.folder / name).glob(f"*-{array}.npy")):
            box, index = (harness.numbers(pathlib.Path(str(file).replace(f"-{array}.npy", f"-{of}.npy")), of_form)
                          for of, of_form in (("box", "q"), ("image_index", "i")))
            places = list(itertools.product(*(range(from_, from_ + side) for from_, side in zip(box, box[3:]))))
            for number, value in enumerate(harness.numbers(file, form)):  # channel by channel
                images.setdefault(index[0], {}).setdefault(places[number % len(places)], []).append(value)
        return images

    def held(self, image, *formulas):
        self.assertEqual(len(image), SIZE[0] * SIZE[1] * SIZE[2])
        for place, values in image.items():
            self.assertEqual(len(values), len(formulas))
            for value, formula in zip(values, formulas):
                self.assertAlmostEqual(value, formula(*place), delta=2e-7 * max(1, abs(value)))

    def test_every_kind_of_series_comes_to_its_patches(self):
        self.make()
        self.json("scan", "archive", "--out", "t.csv", "--hash")
        order = self.table()
        done = self.json("ingest", "t.csv", "--out", "stores")
        self.assertEqual(len(done["stores"]), 6)
        (self.folder / "classes.yaml").write_text(CLASSES, encoding="utf-8")
        self.json("labels", "import", "t.csv", "--stores", "stores", "--set", "organs", "--classes", "classes.yaml")
        for kinds in ([kind for kind in order if kind not in FLOAT], [kind for kind in order if kind in FLOAT]):
            images = self.streamed("-".join(kinds), RUN.format(kinds=", ".join(kinds), more=""))
            self.assertEqual(sorted(images), list(range(len(kinds))))
            for index, kind in enumerate(kinds):
                self.held(images[index], VALUES[kind])
        masks = self.streamed("masks", RUN.format(kinds="lidc", more="labels: {set: organs, mask: true}\n"), "mask", "B")
        self.held(masks[0], lambda z, y, x: int(z in (1, 2) and is_in(OUTLINES, x, y)))
        self.assertEqual(sum(values[0] for values in masks[0].values()), 2 * 14)
        brain, = [store for store in (self.folder / "stores").glob("*.zarr")
                  if "channels" in json.loads((store / "zarr.json").read_text(encoding="utf-8"))["attributes"]["patchbay"]]
        images = self.streamed("brain", RUN.split("stores: stores")[0].replace("t.csv", str(brain)) + RUN.format(kinds="", more="").split("]}\n", 1)[1])
        self.held(images[0], line(1, 0), line(2, 1))


if __name__ == "__main__":
    harness.main()
