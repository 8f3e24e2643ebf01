#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/jobs/synth/synth.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {
namespace {

SynthSlideOptions SmallSlide() {
  SynthSlideOptions options;
  options.width = 1500;
  options.height = 1100;
  return options;
}

Digest DigestOfFile(const std::string& path) {
  const auto text = ReadFile(Folders::OfThisUser(), path, 1u << 30);
  EXPECT_TRUE(text.ok());
  return text.ok() ? Sha256Of(*text) : Digest{};
}

TEST(SynthSlide, OpenSlideKnowsItAsAnAperioSlide) {
  TemporaryFolder folder;
  const std::string path = folder.File("synth.svs");
  ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), path, SmallSlide()).ok());
  OpenSlidePeer peer(path);
  ASSERT_TRUE(peer.ok());
  EXPECT_STREQ(openslide_get_property_value(peer.get(), OPENSLIDE_PROPERTY_NAME_VENDOR), "aperio");
  EXPECT_STREQ(openslide_get_property_value(peer.get(), OPENSLIDE_PROPERTY_NAME_MPP_X), "0.5");
  ASSERT_EQ(openslide_get_level_count(peer.get()), 3);
  const auto image = OpenImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  const ImageLayout& layout = (*image)->layout();
  EXPECT_EQ(layout.kind, "aperio");
  ASSERT_EQ(layout.levels.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    std::int64_t width = 0, height = 0;
    openslide_get_level_dimensions(peer.get(), i, &width, &height);
    EXPECT_EQ(layout.levels[static_cast<std::size_t>(i)].size.x, width);
    EXPECT_EQ(layout.levels[static_cast<std::size_t>(i)].size.y, height);
  }
  EXPECT_EQ(layout.levels[2].size.x, 1500 / 16);
  EXPECT_DOUBLE_EQ(layout.spacing.x->Micrometres(), 0.5);
  EXPECT_DOUBLE_EQ(layout.objective_power.value_or(0), 20);
}

TEST(SynthSlide, EachTileAndStripIsOneWholeJpeg) {
  TemporaryFolder folder;
  const std::string path = folder.File("synth.svs");
  ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), path, SmallSlide()).ok());
  const auto bytes = ReadFile(Folders::OfThisUser(), path, 1u << 30);
  const auto index = TiffIndex::Read(*zarr::OpenStoredFile(Folders::OfThisUser(), path));
  ASSERT_TRUE(bytes.ok() && index.ok()) << index.status();
  std::size_t pieces = 0;
  for (const TiffDirectory& directory : index->directories()) {
    const auto places = index->ReadPieces(directory);
    ASSERT_TRUE(places.ok()) << places.status();
    for (std::size_t i = 0; i < places->offset.size(); ++i, ++pieces) {
      const std::string piece = bytes->substr(places->offset[i], places->size_bytes[i]);
      EXPECT_TRUE(piece.starts_with("\xff\xd8") && piece.ends_with("\xff\xd9")) << pieces;
    }
  }
  EXPECT_GT(pieces, 30u);
}

TEST(SynthSlide, PixelsEqualOpenSlides) {
  TemporaryFolder folder;
  const std::string path = folder.File("synth.svs");
  ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), path, SmallSlide()).ok());
  OpenSlidePeer peer(path);
  const auto image = OpenImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(peer.ok() && image.ok());
  PatchReader reader(**image);
  for (std::uint64_t n = 0; n < 60; ++n) {
    const Box box = RandomBox(21, n, (*image)->layout().levels[0], 400);
    const auto pixels = reader.Read(0, box, 255);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    ASSERT_EQ(CountDifferences(**pixels, peer.ReadArgb(0, box), 255), 0u) << "seed 21 crop " << n;
  }
}

TEST(SynthSlide, SameSeedSameBytesWithAnyThreads) {
  TemporaryFolder folder;
  SynthSlideOptions options = SmallSlide();
  ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), folder.File("a.svs"), options).ok());
  options.threads = 3;
  ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), folder.File("b.svs"), options).ok());
  options.seed = 2;
  ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), folder.File("c.svs"), options).ok());
  EXPECT_EQ(DigestOfFile(folder.File("a.svs")), DigestOfFile(folder.File("b.svs")));
  EXPECT_NE(DigestOfFile(folder.File("a.svs")), DigestOfFile(folder.File("c.svs")));
}

TEST(SynthSlide, ReducedLevelsAreTheAveragesOfTheFinest) {
  TemporaryFolder folder;
  const std::string path = folder.File("synth.svs");
  SynthSlideOptions options = SmallSlide();
  options.quality = 100;
  ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), path, options).ok());
  const auto image = OpenImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(image.ok());
  PatchReader fine(**image), coarse(**image);
  for (const int level : {1, 2}) {
    const std::int64_t step = level == 1 ? 4 : 16;
    const auto& layout = (*image)->layout().levels[static_cast<std::size_t>(level)];
    const auto whole = fine.Read(0, Box2D(0, 0, layout.size.y * step, layout.size.x * step), 0);
    const auto small = coarse.Read(level, Box2D(0, 0, layout.size.y, layout.size.x), 0);
    ASSERT_TRUE(whole.ok() && small.ok());
    double worst = 0;
    for (std::int64_t y = 0; y < layout.size.y; ++y) {
      for (std::int64_t x = 0; x < layout.size.x; ++x) {
        double sum = 0;
        for (std::int64_t i = 0; i < step * step; ++i) {
          const std::int64_t at =
              (y * step + i / step) * layout.size.x * step + x * step + i % step;
          sum += (**whole)[static_cast<std::size_t>(at * 3 + 1)];
        }
        const double mean = sum / static_cast<double>(step * step);
        const auto got = (**small)[static_cast<std::size_t>((y * layout.size.x + x) * 3 + 1)];
        worst = std::max(worst, std::abs(mean - got));
      }
    }
    EXPECT_LE(worst, 4.0) << "level " << level;
  }
}

TEST(SynthSlide, HasTissueNucleiAndGlass) {
  TemporaryFolder folder;
  const std::string path = folder.File("synth.svs");
  SynthSlideOptions options;
  options.width = options.height = 4096;
  ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), path, options).ok());
  const auto image = OpenImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(image.ok());
  PatchReader reader(**image);
  const auto pixels = reader.Read(1, Box2D(0, 0, 1024, 1024), 0);
  ASSERT_TRUE(pixels.ok());
  std::size_t glass = 0, pink = 0, purple = 0;
  for (std::size_t i = 0; i < (*pixels)->size(); i += 3) {
    const int r = (**pixels)[i], g = (**pixels)[i + 1], b = (**pixels)[i + 2];
    glass += g > 225;
    pink += r > g + 30 && r >= b;
    purple += b > r + 10 && b > g + 30;
  }
  const std::size_t all = (*pixels)->size() / 3;
  EXPECT_GT(glass, all / 50);
  EXPECT_GT(pink, all / 5);
  EXPECT_GT(purple, all / 200);
}

TEST(SynthSlide, CancelledOrImpossibleLeavesNothing) {
  TemporaryFolder folder;
  const Status cancelled = SynthSlide(Folders::OfThisUser(), folder.File("a.svs"), SmallSlide(),
                                      [](double done) { return done < 0.5; });
  EXPECT_EQ(cancelled.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(SynthSlide(Folders::OfThisUser(), folder.File("no/a.svs"), SmallSlide()).code(),
            absl::StatusCode::kNotFound);
}

TEST(SynthSlide, OptionsComeFromJsonOrAreRefused) {
  const auto parsed = [](const Json& payload) {
    return ReadPayload<SynthSlideOptions>(payload, "synth.slide");
  };
  const auto options = parsed(Json{{"size", {4096, 8192}}, {"seed", 9}});
  ASSERT_TRUE(options.ok()) << Describe(options.status());
  EXPECT_EQ(options->width, 4096);
  EXPECT_EQ(options->height, 8192);
  EXPECT_EQ(options->seed, 9);
  EXPECT_EQ(parsed(PayloadOf(*options))->width, 4096);
  for (const Json& bad :
       {Json{{"sise", {4096, 512}}}, Json{{"size", "4096"}}, Json{{"size", {4096}}},
        Json{{"size", {100, 4096}}}, Json{{"quality", 101}}, Json{{"threads", 0}}, Json::array({1}),
        Json{{"size", {-5, 512}}}}) {
    EXPECT_EQ(parsed(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace patchbay::workers
