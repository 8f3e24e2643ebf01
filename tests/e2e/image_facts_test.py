"""The facts that a stream gives of its images: the values that the plan used, and those that the table corrects."""
import array
import json

import harness
import trainer_test

SLIDES = """
dataset: cohort.csv
patch: {{size: [64, 64], mpp: [{mpp}]}}
batch: {{global_size: 4, dtype: uint8, tail: pad}}
"""
VOLUMES = """
dataset: volumes
patch: {size: [4, 16, 16]}
batch: {global_size: 2, tail: pad}
"""


class ImageFacts(trainer_test.ModuleCase):
    def images(self, config):
        (self.folder / "facts.yaml").write_text(config)
        return json.loads("".join(self.run_program("""
            stream = patchbay.attach("facts.yaml", cpus=1)
            print(json.dumps([dict(image) for image in stream.images]))
            """)))

    def test_a_slide_has_what_the_plan_used(self):
        slide = self.slide("a.svs", "900x700", 3)
        said = {"mpp": self.json("inspect", slide)["mpp"][0]}
        rows = f"path,slide_id,mpp,affine,site\na.svs,A,{said['mpp']},text,north\n"
        (self.folder / "cohort.csv").write_text(rows)
        (image,) = self.images(SLIDES.format(mpp=1))
        self.assertEqual((image["mpp"], image["stated_mpp"]), (said["mpp"], said["mpp"]))
        self.assertEqual((image["slide_id"], image["site"], image["affine"], image["spacing"]), ("A", "north", None, None))
        self.assertEqual(image["level_sizes"][0], [1, 700, 900])
        for size, downsample in zip(image["level_sizes"], image["downsamples"], strict=True):
            self.assertAlmostEqual(downsample, (700 / size[1] + 900 / size[2]) / 2)
        plan = self.json("config", "check", "facts.yaml")
        self.assertNotIn("mpp_corrected", plan["skipped"])

        (self.folder / "cohort.csv").write_text(rows.replace(f",{said['mpp']},", f",{said['mpp'] / 2},"))
        (image,) = self.images(SLIDES.format(mpp=1))
        self.assertEqual((image["mpp"], image["stated_mpp"]), (said["mpp"] / 2, said["mpp"]))
        other = self.json("config", "check", "facts.yaml")
        self.assertNotEqual(other["plan_digest"], plan["plan_digest"])
        self.assertEqual(other["skipped"]["mpp_corrected"][0]["reason"],
                         f"{said['mpp'] / 2} um/px; the file states {said['mpp']}")
        shown = self.command("stream", "facts.yaml")
        self.assertIn(f"a.svs: by the table's column mpp {said['mpp'] / 2} um/px; the file states {said['mpp']}", shown.stderr)

        (self.folder / "cohort.csv").write_text(rows.replace(f",{said['mpp']},", ",20x,"))
        refused = self.command("config", "check", "facts.yaml")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("cohort.csv:2: column 'mpp': '20x' is not a number of um per pixel", refused.stderr)

    def test_a_volume_has_the_spacing_and_the_affine_of_its_store(self):
        made = self.command("synth", "ct", self.folder / "series", "--size", "12x101x90", "--seed", 4)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.json("ingest", "series", "--out", "volumes")
        (store,) = (self.folder / "volumes").glob("*.zarr")
        root = json.loads((store / "zarr.json").read_text())["attributes"]
        (image,) = self.images(VOLUMES)
        self.assertEqual(image["affine"], root["patchbay"]["affine_ras"])
        scale = root["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
        self.assertEqual(image["spacing"], scale)
        self.assertIsNone(image["mpp"])
        self.assertEqual(image["level_sizes"][0], [12, 101, 90])

    def test_a_volume_has_the_spacing_of_each_axis(self):
        header = ("ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
                  "TransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = 0 0 0\nElementSpacing = 0.5 0.75 2.5\n"
                  "DimSize = 90 40 12\nElementType = MET_SHORT\nElementDataFile = LOCAL\n")
        voxels = array.array("h", (i * 37 % 1000 - 500 for i in range(90 * 40 * 12)))
        (self.folder / "a.mha").write_bytes(header.encode() + voxels.tobytes())
        self.json("ingest", "a.mha", "--out", "volumes", "--modality", "CT")
        (image,) = self.images(VOLUMES)
        self.assertEqual(image["spacing"], [2.5, 0.75, 0.5])
        self.assertEqual(image["level_sizes"][0], [12, 40, 90])


if __name__ == "__main__":
    harness.main()
