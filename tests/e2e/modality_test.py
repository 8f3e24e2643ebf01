"""Modality is a fact of the image: volumes that are not in Hounsfield units are refused where an op or the default fill takes
them for such; side-cars, dataset.json, tables and --modality say what a volume is, a table also of stores made before."""
import json

import harness
import trainer_test

RUN = """dataset: {dataset}
numerics: cpu
patch: {{size: [4, 16, 16]{fill}}}
batch: {{global_size: 4, dtype: float32}}
preprocess: [{ops}]
"""
FILL = ", fill: -1024"


class Modality(trainer_test.ModuleCase):
    def setUp(self):
        harness.Case.setUp(self)  # without the slide of a trainer's test

    def volume(self, name="v.nii"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        harness.nifti(path, (8, 40, 36), (2.0, 1.0, 1.0), lambda z, y, x: 40 * z + 30 * y + x - 1000 if 3 < x < 32 else -1000)
        return path

    def ingested(self, source, out, *words):
        self.json("ingest", source, "--out", self.folder / out, *words)
        (store,) = (self.folder / out).glob("*.zarr")
        return store, json.loads((store / "zarr.json").read_text())["attributes"]["patchbay"]

    def check(self, dataset, ops="", fill=FILL, expect=0):
        """The stderr of `config check`."""
        run = self.folder / "run.yaml"
        run.write_text(RUN.format(dataset=dataset, ops=ops, fill=fill))
        done = self.command("config", "check", run)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr

    def test_hounsfield_units_are_asked_for_by_name_and_a_table_settles_what_a_store_leaves_open(self):
        store, own = self.ingested(self.volume(), "stores")
        self.assertNotIn("modality", own)
        self.check(store)
        asks = {"window: {range: [0, 1]}": "window", "zscore: {over: body}": "zscore",
                "ct_normalize: {lower: 0, upper: 9, mean: 1, std: 1}": "ct_normalize"}
        for text, op in asks.items():
            said = self.check(store, text, expect=2)
            for part in (f"run.yaml:5: plan stream: {store}: key 'preprocess[0].{op}': it takes Hounsfield units, and the volume's "
                         "modality is not known; if it is CT, the column `modality` of a table says so", "--modality CT"):
                self.assertIn(part, said)
        self.assertIn("key 'patch.fill': its default, -1024, is air in Hounsfield units, and the volume's modality is not known; "
                      "state patch.fill", self.check(store, fill="", expect=2))
        table = self.folder / "t.csv"
        table.write_text(f"path,modality\n{store},ct\n")
        for text in asks:
            self.check(table, text, "")
        (image,) = self.images()
        self.assertEqual((image["modality"], image["unit"]), ("CT", "HU"))
        table.write_text(f"path,modality\n{store},MR\n")
        self.assertIn("and the volume's modality is MR;", self.check(table, "window: {range: [0, 1]}", expect=2))
        table.write_text(f"path,modality\n{store},CTT\n")
        self.assertIn("t.csv:2: column 'modality': 'CTT' is none of CT, CT:arbitrary, MR, PT", self.check(table, expect=2))

    def images(self):
        if not list(trainer_test.MODULE.glob("patchbay/_extension*.so")):
            self.skipTest("the Python module was not built (no headers of Python, or no nanobind)")
        return json.loads("".join(self.run_program("""
            import json
            stream = patchbay.attach("run.yaml", cpus=1)
            print(json.dumps([dict(image) for image in stream.images]))
            """)))

    def test_side_cars_datasets_and_tables_say_what_is_stored(self):
        says = {"a.nii": ("MR", "side-car"), "d/imagesTr/b_0000.nii": ("MR", "dataset.json"), "c.nii": ("PT", "table"), "e.nii": ("CT", "--modality")}
        for name in says:
            self.volume(name)
        for name in ("a.json", "c.json"):
            (self.folder / name).write_text('{"Modality": "MR"}')
        (self.folder / "d/dataset.json").write_text('{"channel_names": {"0": "T2"}}')
        self.json("scan", *says, "--out", "scanned.csv")
        self.assertEqual((self.folder / "scanned.csv").read_text().count(",MR,"), 3)
        table = self.folder / "t.csv"
        for name, (modality, origin) in says.items():
            table.write_text(f"path,modality\n{name},{'PT:SUVbw' if origin == 'table' else ''}\n")
            flag = ("--modality", "CT") if origin == "--modality" else ()
            _, own = self.ingested(table, origin, *flag)
            self.assertEqual((own["modality"]["name"], own["modality"]["from"]), (modality, origin))
        self.assertEqual(json.loads(next((self.folder / "table").glob("*.zarr/zarr.json")).read_text())["attributes"]["patchbay"]["modality"],
                         {"name": "PT", "unit": "SUVbw", "from": "table", "stated": {"name": "MR", "unit": "arbitrary"}})

    def test_a_flag_says_it_of_a_store_that_is_made_and_not_of_one_that_is_there(self):
        store, own = self.ingested(self.volume(), "stores", "--modality", "MR")
        self.assertEqual(own["modality"], {"name": "MR", "unit": "arbitrary", "from": "--modality"})
        self.assertNotIn("body_histogram", own)
        self.assertEqual(json.loads((store / "0/zarr.json").read_text())["fill_value"], 0)
        self.assertIn("modality      MR (--modality)\nvalues        -1000 to ", self.command("inspect", store).stdout)
        self.ingested(self.folder / "v.nii", "stores", "--modality", "MR")
        said = self.command("ingest", "v.nii", "--out", "stores", "--modality", "CT").stderr
        self.assertIn("exists, and its modality is MR, not CT; a table's column `modality` settles it for streams", said)
        self.assertIn("--modality: expected one of CT, ", self.command("ingest", "v.nii", "--out", "o", "--modality", "X").stderr)

    def test_a_series_of_ct_needs_no_word_and_python_has_the_numbers_of_zscore(self):
        self.command("synth", "ct", "series", "--size", "12x64x48")
        store, own = self.ingested(self.folder / "series", "stores")
        self.assertNotIn("modality", own)
        self.assertIn("modality      CT\nHU            ", self.command("inspect", store).stdout)
        self.check(store, "window: {range: [-150, 250]}, zscore: {over: body}", "")
        (image,) = self.images()
        self.assertEqual((image["modality"], image["unit"], image["digest"]), ("CT", "HU", own["digest"]))
        self.assertEqual((image["spacing"], image["affine"]), ([2.5, 0.78125, 0.78125], own["affine_ras"]))
        self.assertTrue(0.1 < image["mean"] < 0.9 and 0.01 < image["std"] < 0.5, image)
        self.check(store, "percentile: {range: [1, 99]}", "")
        (image,) = self.images()
        self.assertTrue(-1100 < image["low"] < -500 < 100 < image["high"] < 3000 and image["mean"] is None, image)
        other = self.folder / "t.csv"
        other.write_text("path,modality\nseries,MR\n")
        _, own = self.ingested(other, "others")
        self.assertEqual(own["modality"], {"name": "MR", "unit": "arbitrary", "from": "table", "stated": {"name": "CT", "unit": "HU"}})


if __name__ == "__main__":
    harness.main()
