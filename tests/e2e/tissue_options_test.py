"""Tissue that one can set: by options, by a column of the table, drawn before it is written, and alike in a slide and its store."""
import csv
import json

import harness


class TissueOptions(harness.Case):
    def setUp(self):
        super().setUp()
        self.slide("a.svs", "3000x2000", 3)
        self.json("ingest", "a.svs", "--out", "stores", "--keep-names", "--assume-mpp", "0.5")
        self.store = "stores/a.ome.zarr"

    def set_of(self):
        """Options of the current set as its store records them, and the share of its pixels that are tissue."""
        labels = self.folder / self.store / "labels"
        listed = json.loads((labels / "zarr.json").read_text())["attributes"]["ome"]["labels"]
        revision = next(r for r in listed if r.startswith("tissue."))
        return json.loads((labels / revision / "zarr.json").read_text())["attributes"]["patchbay"]["labels"]

    def shown(self, *paths, options=()):
        return self.json("preview", *paths, "--out", "sheet.png", "--force", *options)["tissue"]

    def test_a_slide_and_its_store_show_the_same_tissue(self):
        for options in ((), ("--tissue", "tiatoolbox"), ("--option", "threshold=40", "--option", "min-area=0")):
            slide, store = self.shown("a.svs", self.store, options=options)
            self.assertAlmostEqual(slide, store, delta=0.002, msg=options)
            self.assertGreater(slide, 0)
        strict = self.shown(self.store, options=("--option", "threshold=250"))
        self.assertLess(strict[0], self.shown(self.store)[0])

    def test_options_of_the_command_and_of_a_row_make_the_set(self):
        self.json("labels", "tissue", self.store, "--option", "closing=0", "--option", "pen=no")
        own = self.set_of()["tissue"]["options"]
        self.assertEqual((own["close_um"], own["median_k"], "pen" in own), (0, 11, False))
        with open(self.folder / "table.csv", "w", newline="") as table:
            csv.writer(table).writerows([["path", "slide_id", "tissue_options"], [self.store, "a", "blur=3; closing=8"]])
        self.json("labels", "tissue", "table.csv", "--option", "closing=64", "--option", "black=20")
        own = self.set_of()["tissue"]["options"]
        self.assertEqual((own["close_um"], own["median_k"], own["black"], own["pen"]), (8, 3, 20, True))
        self.json("labels", "tissue", self.store, "--profile", "ihc")
        self.assertEqual(self.set_of()["tissue"]["profile"], "ihc")

    def test_what_is_no_option_is_refused_by_key_and_row(self):
        wrong = self.command("labels", "tissue", self.store, "--option", "close=3")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("no such key (channel, threshold, blur, closing, min-area, max-hole, pen, black)", wrong.stderr)
        wrong = self.command("preview", "a.svs", "--out", "no.png", "--option", "blur=4")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("blur: expected one of 1, 3, 5", wrong.stderr)
        (self.folder / "bad.csv").write_text(f"path,slide_id,tissue_options\n{self.store},a,pen=maybe\n")
        wrong = self.command("labels", "tissue", "bad.csv")
        self.assertIn("pen: expected one of yes, no, not 'maybe'", wrong.stderr)
        self.assertIn("tissue_options", wrong.stderr)

    def test_a_square_is_shown_around_a_place(self):
        self.json("labels", "tissue", self.store)
        for image in ("a.svs", self.store):
            self.json("preview", image, "--at", "1000,1500", "--um", "200", "--out", "near.png", "--force")
        for at, cause in (("9000,10", "outside the image of 2000 x 3000 pixels"), ("5", "expected Y,X")):
            wrong = self.command("preview", self.store, "--at", at, "--out", "no.png")
            self.assertIn(cause, wrong.stderr)


if __name__ == "__main__":
    harness.main()
