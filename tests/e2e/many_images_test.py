"""A dataset whose plan does not fit one message."""
import os

import harness

IMAGES = 9000


class ManyImages(harness.Case):
    def test_thousands_of_slides_stream_with_the_same_digest_each_time(self):
        slide = self.slide("one.tif", size="600x500", seed=4)
        folder = self.folder / "slides"
        folder.mkdir()
        for i in range(IMAGES):
            os.link(slide, folder / f"a-slide-with-a-name-of-an-ordinary-length-{i:06}.svs")
        run = self.run_file(folder, patch=128, batch=64)
        run.write_text(run.read_text().replace("order: shuffled", "order: sequential"))
        cluster = self.up(2)
        rows = [self.json("stream", run, "--epoch", 0, "--batches", 12, "--digest") for _ in range(2)]
        self.assertEqual(rows[0]["digest"], rows[1]["digest"])
        self.assertEqual(rows[0]["batches"], 12)
        self.down(cluster)


if __name__ == "__main__":
    harness.main()
