"""stain_normalize over slides that are not H&E: ingest says so, streams refuse them by name, keep their fit or skip them; and by tissue."""
import json
import math
import struct

import harness

SIDE = 256
HEMATOXYLIN, EOSIN, DAB = (0.5626, 0.7201, 0.4062), (0.2159, 0.8012, 0.5581), (0.2694, 0.57, 0.777)
PATCH_BYTES = 3 * 128 * 128


def mixture(first, second):
    """Both stains in all mixtures, and some background."""
    def colour(y, x):
        a, b = (0.008 * (y - 32), 0.005 * x) if y >= 32 else (0, 0)
        return tuple(round(240 * math.exp(-a * f - b * s)) for f, s in zip(first, second))
    return colour


def light(y, x):
    """Fluorescence: blue nuclei and a red marker on black."""
    blue, red = 180 * ((y // 10 + x // 10) % 3 == 0), 120 * (y % 17 < 4)
    return 3 + red, 4 + red // 3, 5 + blue


def tiff(path, colour):
    """A slide of one uncompressed tile."""
    entries, head = [], 8 + SIDE * SIDE * 3
    data = b"".join(bytes(colour(y, x)) for y in range(SIDE) for x in range(SIDE))
    for tag, kind, value in ((256, 4, SIDE), (257, 4, SIDE), (258, 3, None), (259, 3, 1), (262, 3, 2), (277, 3, 3),
                             (322, 4, SIDE), (323, 4, SIDE), (324, 4, 8), (325, 4, len(data))):
        where = struct.pack("<I", head) if value is None else struct.pack("<H" if kind == 3 else "<I", value).ljust(4, b"\0")
        entries.append(struct.pack("<HHI", tag, kind, 3 if value is None else 1) + where)
    path.write_bytes(struct.pack("<2sHI", b"II", 42, head + 6) + data + struct.pack("<3H", 8, 8, 8)
                     + struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4))
    return path


class Stained(harness.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.once("stores", self.stores)
        self.home = self.folder / "home"

    def config(self, options, dataset="stores", name="run.yaml"):
        preprocess = f"preprocess: [{{stain_normalize: {{{options}}}}}]\n" if options is not None else ""
        (self.folder / name).write_text(
            f"dataset: {dataset}\nnumerics: cpu\npatch: {{size: [128, 128], level: 0}}\nsampling: {{order: sequential}}\n"
            f"batch: {{global_size: 4, dtype: uint8}}\n{preprocess}")
        return name

    def patches(self, options, dataset="stores"):
        """{slide: bytes of its patches}, and what the stream says."""
        said = self.json("stream", self.config(options, dataset), "--digest", "--save", folder := self.id() + str(len(list(self.folder.iterdir()))))
        data = b"".join((raw := path.read_bytes())[10 + int.from_bytes(raw[8:10], "little"):]
                        for path in sorted((self.folder / folder).glob("*image.npy")))
        names = sorted(path.name for path in (self.folder / dataset).glob("*.zarr")) or [dataset]
        each = len(data) // len(names)
        return {name.rpartition("/")[2].partition(".")[0]: data[i * each:(i + 1) * each] for i, name in enumerate(names)}, said


class Misfit(Stained):
    def stores(self):
        green = mixture(HEMATOXYLIN, EOSIN)
        for name, colour in (("he", green), ("dab", mixture(HEMATOXYLIN, DAB)), ("light", light),
                             ("pen", lambda y, x: (40, 160, 90) if x >= 230 else green(y, x))):
            tiff(self.folder / f"{name}.tif", colour)
        self.said = self.json("ingest", *sorted(self.folder.glob("*.tif")), "--out", "stores", "--keep-names")
        Misfit.warnings = {store["name"].partition(".")[0]: store["warnings"] for store in self.said["stores"]}
        return self.keep(self.folder)

    def test_ingest_says_which_slides_are_not_h_and_e(self):
        self.assertEqual(self.warnings["he"], [])
        self.assertIn("not H&E: its second stain absorbs more blue than green", self.warnings["dab"][0])
        self.assertIn("not H&E: its background is dark", self.warnings["light"][0])
        self.assertRegex(self.warnings["pen"][0], r"pen, 1\d.* % of the tissue, is left out of the stain fit")

    def test_streams_refuse_them_all_by_name(self):
        for command in (("stream", self.config("")), ("config", "check", self.config("profile: reinhard", name="r.yaml")),
                        ("stream", self.config("reference: cohort", name="c.yaml"))):
            refused = self.command(*command)
            self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
            for part in ("preprocess[0].stain_normalize", "dab", "light", "not H&E: its second stain", "misfit: skip"):
                self.assertIn(part, refused.stderr)
            self.assertNotIn("pen.", refused.stderr)
        reference = self.command("stream", self.config("reference: stores/dab.ome.zarr, misfit: skip", "stores/he.ome.zarr"))
        self.assertEqual(reference.returncode, 2, reference.stderr)
        self.assertIn("the stain reference: not H&E", reference.stderr)
        self.assertIn("misfit", self.command("config", "check", self.config("misfit: drop")).stderr)

    def test_skip_leaves_them_unnormalised_and_keep_takes_their_fit(self):
        plain, _ = self.patches(None)
        kept, said = self.patches("misfit: keep")
        self.assertEqual({row["reason"].rpartition(": ")[2] for row in said["skipped"]["without_stain"]}, {"its fit is used as it is"})
        for name, patches in kept.items():
            self.assertNotEqual(patches, plain[name], name)
        for profile in ("macenko/cucim", "reinhard"):
            alone, _ = self.patches(f"profile: {profile}", "stores/he.ome.zarr")
            skipped, said = self.patches(f"profile: {profile}, misfit: skip")
            self.assertEqual(skipped["he"], alone["he"])
            self.assertNotEqual(skipped["he"], plain["he"])
            self.assertEqual((skipped["dab"], skipped["light"]), (plain["dab"], plain["light"]))
            self.assertEqual(len(said["skipped"]["without_stain"]), 2)
        first = self.json("stream", "run.yaml", "--batches", 1)
        self.json("stream", "run.yaml", "--resume", first["resume_token"], "--batches", 1)

    def test_a_jitter_acts_on_skipped_slides_as_without_normalisation(self):
        jitter = "augment: [{stain_jitter: {p: 1, alpha: 0.3}}]\n"
        digests = []
        for options in ("misfit: skip", None):
            name = self.config(options, "stores/dab.ome.zarr")
            (self.folder / name).write_text((self.folder / name).read_text() + jitter)
            digests.append(self.json("stream", name, "--digest")["digest"])
        self.assertEqual(*digests)

    def test_a_lock_takes_the_cohort_of_those_that_are(self):
        rows = "".join(f"{name}.tif,{name},p{i}\n" for i, name in enumerate(("he", "dab")))
        (self.folder / "cohort.csv").write_text("path,slide_id,patient_id\n" + rows)
        name = self.config("reference: cohort", "cohort.csv\nstores: stores", "lock.yaml")
        refused = self.command("lock", name)
        self.assertIn("not H&E: its second stain", refused.stderr)
        self.assertNotEqual(refused.returncode, 0)
        name = self.config("reference: cohort, misfit: skip", "cohort.csv\nstores: stores", "lock.yaml")
        free = self.json("stream", name, "--digest")["digest"]
        self.json("lock", name)
        self.assertEqual(self.json("stream", name, "--digest")["digest"], free)
        fit = self.json("config", "print", name)["preprocess"][0]["stain_normalize"]["reference_fit"]
        stored = self.json("inspect", "stores/he.ome.zarr")["stain"]["macenko"]["values"]
        self.assertTrue(all(abs(a - b) < 1e-8 for a, b in zip(fit, stored)))


CLASSES = "classes: [{name: tissue, value: 1}]\n"
LEFT = {"type": "FeatureCollection", "features": [
    {"type": "Feature", "properties": {"classification": {"name": "tissue"}},
     "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [128, 0], [128, SIDE], [0, SIDE], [0, 0]]]}}]}


class ByTissue(Stained):
    """A slide with tissue on its left half and a black marker on its right: the fit by the set is that of the left."""
    def stores(self):
        tissue = mixture(HEMATOXYLIN, EOSIN)
        tiff(self.folder / "marked.tif", lambda y, x: tissue(y, 2 * x) if x < 128 else (20, 22, 24))
        tiff(self.folder / "clean.tif", lambda y, x: tissue(y, 2 * x) if x < 128 else (250, 250, 250))
        (self.folder / "classes.yaml").write_text(CLASSES)
        (self.folder / "left.geojson").write_text(json.dumps(LEFT))
        tiff(self.folder / "plain.tif", tissue)
        for name in ("marked", "clean", "plain"):
            self.json("ingest", f"{name}.tif", "--out", name, "--keep-names")
        self.json("labels", "import", "marked/marked.ome.zarr", "left.geojson", "--set", "tissue", "--classes", "classes.yaml")
        self.json("labels", "tissue", "clean/clean.ome.zarr")
        return self.keep(self.folder)

    def left(self, options, dataset):
        """The patches of the left half."""
        patches = next(iter(self.patches(options, dataset)[0].values()))
        return patches[:PATCH_BYTES], patches[2 * PATCH_BYTES:3 * PATCH_BYTES]

    def test_the_fit_is_that_of_the_pixels_of_the_set(self):
        clean = self.left("tissue: none", "clean")
        self.assertNotEqual(self.left("tissue: none, misfit: keep", "marked"), clean)
        for profile in ("macenko/cucim", "reinhard"):
            self.assertEqual(self.left(f"tissue: tissue, profile: {profile}", "marked"), self.left(f"tissue: none, profile: {profile}", "clean"))
        self.assertEqual(self.command("verify", "marked/marked.ome.zarr").returncode, 0)
        for options in ("alpha: 5", "beta: 0.6", "background: 225"):
            by_set = self.left(f"tissue: tissue, {options}", "marked")
            self.assertNotEqual(by_set, clean, options)
            self.assertEqual(self.left(f"tissue: none, {options}", "clean"), by_set, options)
        default = self.json("stream", self.config("", "clean"), "--digest")["digest"]
        by_store = self.config("reference: marked/marked.ome.zarr, tissue: tissue", "marked", "reference.yaml")
        self.assertNotEqual(self.json("stream", by_store, "--digest")["digest"], default)

    def test_a_fit_goes_by_the_set_unasked(self):
        run = lambda options: self.config(options, "[marked, plain]")
        digest = lambda options: self.json("stream", run(options), "--digest")["digest"]
        refused = self.command("stream", run("tissue: tissue"))
        self.assertIn("plain.ome.zarr", refused.stderr)
        self.assertNotEqual(digest(""), digest("tissue: none, misfit: keep"))
        by_reference = [self.json("stream", self.config(f"reference: marked/marked.ome.zarr{options}", "plain"), "--digest")["digest"]
                        for options in ("", ", tissue: none, misfit: keep")]
        self.assertNotEqual(*by_reference)
        checked = self.command("config", "check", run(""))
        self.assertIn("stain fits         1 of the tissue of a label set, 1 of all pixels", checked.stdout)
        counts = [self.json("config", "check", self.config(options, dataset))["stains_of_tissue"]
                  for options, dataset in (("", "marked"), ("tissue: none, misfit: keep", "marked"), ("", "plain"))]
        self.assertEqual(counts, [1, 0, 0])
        plans = {self.json("config", "check", self.config(options, "plain"))["plan_digest"] for options in ("", "tissue: none")}
        self.assertEqual(len(plans), 1)

    def test_what_lacks_a_set_or_its_colours_is_refused_by_key(self):
        for options, dataset, *parts in (
                ("tissue: tissue, beta: 3", "clean", "run.yaml:6", "stain_normalize.beta"),
                ("tissue: lesion", "marked", "marked.ome.zarr", "preprocess[0].stain_normalize", "lesion")):
            refused = self.command("stream", self.config(options, dataset))
            self.assertEqual(refused.returncode, 2, refused.stderr)
            for part in parts:
                self.assertIn(part, refused.stderr)
        revision = next((self.folder / "clean/clean.ome.zarr/labels").glob("tissue.*"))
        colours = revision / "tissue.colours"
        whole = colours.read_bytes()
        for content, part in ((whole + b"\1", "another file than was written"), (None, "has no colours of its tissue")):
            colours.unlink() if content is None else colours.write_bytes(content)
            refused = self.command("stream", self.config("tissue: tissue", "clean"))
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(part, refused.stderr)
        colours.write_bytes(whole)

    def test_a_store_without_its_colours_has_the_fit_of_ingest_alone(self):
        store = self.folder / "plain/plain.ome.zarr"
        colours = store / "0/stain.colours"
        whole = colours.read_bytes()
        self.assertEqual(self.command("verify", store).returncode, 0)
        as_ingest = self.json("stream", self.config("", "plain"), "--digest")["digest"]
        for content, part in ((whole + b"\1", "0/stain.colours: another file than was written"), (None, "the store has no colours to fit by them")):
            colours.unlink() if content is None else colours.write_bytes(content)
            for options in ("alpha: 5", "tissue: none, beta: 0.6", "background: 225"):
                refused = self.command("stream", self.config(options, "plain"))
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn(part, refused.stderr)
                self.assertIn("plain.ome.zarr", refused.stderr)
            self.assertEqual(self.json("stream", self.config("", "plain"), "--digest")["digest"], as_ingest)
            self.assertEqual("0/stain.colours: another file than was written" in self.command("verify", store).stderr, content is not None)
        colours.write_bytes(whole)

    def test_a_lock_pins_the_set(self):
        (self.folder / "cohort.csv").write_text("path,slide_id,patient_id\nmarked.tif,m,p\n")
        for options in ("tissue: tissue, reference: cohort", "reference: cohort"):
            name = self.config(options, "cohort.csv\nstores: marked", "lock.yaml")
            free = self.json("stream", name, "--digest")["digest"]
            self.json("lock", name)
            self.json("labels", "tissue", "marked/marked.ome.zarr")
            self.assertEqual(self.json("stream", name, "--digest")["digest"], free)
            self.assertIn("relabelled", self.json("config", "check", name)["lock"]["summary"])
            self.json("labels", "import", "marked/marked.ome.zarr", "left.geojson", "--set", "tissue", "--classes", "classes.yaml")
            (self.folder / "lock.lock").unlink()


if __name__ == "__main__":
    harness.main()
