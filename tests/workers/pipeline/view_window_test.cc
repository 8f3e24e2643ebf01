// Landmarks: a spot at a known pixel of level 0 lies where a patch's box says, at every level and
// resolution.
#include "workers/stream/view_window.h"

#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "runtime/base/strings.h"
#include "workers/stream/chain_options.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kSide = 1201;
constexpr double kSpotSigma = 9;

/// A level of a pyramid: a soft spot, averaged over the pixels of level 0 that each pixel spans.
std::vector<float> LevelOf(std::int64_t downsample, double spot_y, double spot_x) {
  const std::int64_t side = (kSide + downsample - 1) / downsample;
  std::vector<float> level(static_cast<std::size_t>(side * side));
  const auto profile = [&](std::int64_t at, double spot) {
    double sum = 0;
    for (std::int64_t i = 0; i < downsample; ++i) {
      const double d = static_cast<double>(at * downsample + i) + 0.5 - spot;
      sum += std::exp(-d * d / (2 * kSpotSigma * kSpotSigma));
    }
    return sum / static_cast<double>(downsample);
  };
  for (std::int64_t y = 0; y < side; ++y) {
    const double along = profile(y, spot_y);
    for (std::int64_t x = 0; x < side; ++x) {
      level[static_cast<std::size_t>(y * side + x)] =
          static_cast<float>(along * profile(x, spot_x));
    }
  }
  return level;
}

struct Place {
  double y = 0, x = 0;
};

/// The spot's centre of mass in an image of one channel.
Place CentreOf(const std::vector<float>& image, std::int64_t width) {
  double weight = 0;
  Place centre;
  for (std::size_t i = 0; i < image.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    weight += image[i];
    centre.y += image[i] * (static_cast<double>(at / width) + 0.5);
    centre.x += image[i] * (static_cast<double>(at % width) + 0.5);
  }
  return {centre.y / weight, centre.x / weight};
}

/// The chain's source of one view, cut out of a level; outside is 0.
std::vector<float> SourceOf(const ViewWindow& window, const Extent& source,
                            const std::vector<float>& level, std::int64_t side) {
  std::vector<float> finer(static_cast<std::size_t>(window.box.height * window.box.width));
  for (std::int64_t y = 0; y < window.box.height; ++y) {
    for (std::int64_t x = 0; x < window.box.width; ++x) {
      const std::int64_t at_y = window.box.y + y, at_x = window.box.x + x;
      if (at_y < 0 || at_x < 0 || at_y >= side || at_x >= side) continue;
      finer[static_cast<std::size_t>(y * window.box.width + x)] =
          level[static_cast<std::size_t>(at_y * side + at_x)];
    }
  }
  if (window.IsPlain()) return finer;
  std::vector<float> out(static_cast<std::size_t>(source.y * source.x));
  const auto view = [](std::vector<float>& pixels, std::int64_t height, std::int64_t width) {
    return ContiguousView<3>(reinterpret_cast<std::byte*>(pixels.data()), DType::kFloat32,
                             {height, width, 1});
  };
  ops::AreaAverage average;
  EXPECT_TRUE(average
                  .Run(view(finer, window.box.height, window.box.width), window.y, window.x,
                       view(out, source.y, source.x))
                  .ok());
  return out;
}

struct Stream {
  plan::Plan plan;
  ops::Chain chain;
};

Stream StreamOf(const std::string& patch, const std::string& augment) {
  const auto config = plan::ParseRunConfig(
      StrCat("{dataset: a, numerics: cpu, seed: 3, patch: ", patch,
             ", sampling: {positions: random, patches_per_epoch: 8}, augment: [", augment,
             "], batch: {global_size: 2}}"),
      "test");
  EXPECT_TRUE(config.ok()) << config.status();
  std::vector<Extent> levels;
  for (const std::int64_t d : {1, 2, 4})
    levels.push_back(Flat((kSide + d - 1) / d, (kSide + d - 1) / d));
  plan::PlannedImage image{Sha256Of("a"), "zarr", levels[config->level], 1, DType::kFloat32};
  if (!config->mpp.empty()) {
    image.views =
        *plan::ChooseViews(plan::MagnificationOf(*config), levels, SpacingOfMpp(0.5, 0.5));
    image.size = image.views[0].size;
  }
  auto plan = plan::Plan::Build(*config, {image});
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto chain = ops::Chain::Compile(ChainOptionsOf(*plan));
  EXPECT_TRUE(chain.ok()) << chain.status();
  return {*std::move(plan), *std::move(chain)};
}

/// Every patch of an epoch whose middle the spot is near, in every view: where it is, against where
/// box and level put it, in pixels of the patch.
int ExpectSpotWhereBoxSays(const Stream& stream, double limit) {
  const Extent source = stream.chain.source_extent(), patch = stream.plan.config().patch;
  const double margin = static_cast<double>(source.y - patch.y) / 2;
  int seen = 0;
  for (std::uint64_t ordinal = 0; ordinal < 8; ++ordinal) {
    const auto spec = stream.plan.DeriveSpec(0, ordinal);
    EXPECT_TRUE(spec.ok());
    const plan::PlannedView first = stream.plan.ViewOf(0, 0);
    const Box& box = spec->box;
    // A landmark off the centre, by a tenth of the patch.
    const double spot_y =
        (static_cast<double>(box.y) + 0.6 * static_cast<double>(box.height)) * first.downsample_y;
    const double spot_x =
        (static_cast<double>(box.x) + 0.45 * static_cast<double>(box.width)) * first.downsample_x;
    for (std::size_t v = 0; v < stream.plan.views(); ++v) {
      const plan::PlannedView view = stream.plan.ViewOf(0, v);
      const auto downsample = static_cast<std::int64_t>(view.downsample_y);
      const ViewWindow window = WindowOf(stream.plan, stream.chain, *spec, v);
      EXPECT_EQ(window.level, view.level);
      const auto image = SourceOf(window, source, LevelOf(downsample, spot_y, spot_x),
                                  (kSide + downsample - 1) / downsample);
      const Place found = CentreOf(image, source.x);
      // From the patch's centre, which the views share, in pixels of this view.
      const double scale_y =
          static_cast<double>(patch.y) / static_cast<double>(view.source.y) / view.downsample_y;
      const double scale_x =
          static_cast<double>(patch.x) / static_cast<double>(view.source.x) / view.downsample_x;
      const double off_y = 0.1 * static_cast<double>(box.height) * first.downsample_y * scale_y;
      const double off_x = -0.05 * static_cast<double>(box.width) * first.downsample_x * scale_x;
      EXPECT_NEAR(found.y, margin + static_cast<double>(patch.y) / 2 + off_y, limit)
          << ordinal << " view " << v;
      EXPECT_NEAR(found.x, margin + static_cast<double>(patch.x) / 2 + off_x, limit)
          << ordinal << " view " << v;
      ++seen;
    }
  }
  return seen;
}

TEST(ViewWindow, LandmarksLieWhereTheBoxSaysAtEveryLevel) {
  for (const int level : {0, 1, 2}) {
    EXPECT_EQ(ExpectSpotWhereBoxSays(StreamOf(StrCat("{size: [128, 128], level: ", level, "}"), ""),
                                     0.05),
              8);
  }
}

TEST(ViewWindow, LandmarksLieWhereTheBoxSaysAtEveryMppAndInContexts) {
  for (const char* patch :
       {"{size: [128, 128], mpp: [0.5, 1.0]}", "{size: [128, 96], mpp: [0.7]}",
        "{size: [128, 128], mpp: [0.9, 1.7, 2.6]}", "{size: [96, 128], mpp: [1.37, 2.0]}",
        "{size: [128, 128], mpp: [0.4], upsample: true}"}) {
    SCOPED_TRACE(patch);
    // Centres of contexts lie on whole pixels of their level: half a pixel at most.
    EXPECT_GE(ExpectSpotWhereBoxSays(StreamOf(patch, ""), 0.5 + 1e-6), 8);
  }
}

TEST(ViewWindow, LandmarksLieWhereTheBoxSaysBehindACentredCrop) {
  for (const char* patch :
       {"{size: [128, 128], mpp: [0.5]}", "{size: [128, 128], mpp: [0.8, 1.5]}"}) {
    SCOPED_TRACE(patch);
    EXPECT_GE(ExpectSpotWhereBoxSays(
                  StreamOf(patch, "{crop: {margin: [10, 10], position: center}}"), 0.5),
              8);
  }
}

TEST(ViewWindow, LevelAsItIsIsReadWithoutResampling) {
  const Stream stream = StreamOf("{size: [128, 128], mpp: [0.51, 2.04]}", "");
  const auto spec = stream.plan.DeriveSpec(0, 0);
  ASSERT_TRUE(spec.ok());
  EXPECT_TRUE(WindowOf(stream.plan, stream.chain, *spec, 0).IsPlain());
  EXPECT_TRUE(WindowOf(stream.plan, stream.chain, *spec, 1).IsPlain());
  EXPECT_EQ(WindowOf(stream.plan, stream.chain, *spec, 0).box, spec->box);
}

}  // namespace
}  // namespace patchbay::workers
