// Landmarks: a spot at a known pixel of level 0 lies where a patch's box says, at every level and
// resolution.
#include "workers/stream/view_window.h"

#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "tests/contract/known_ops.h"
#include "workers/stream/chain_options.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kSide = 1201;
constexpr double kSpotSigma = 9;

/// One axis of a level of a pyramid: a soft spot, averaged over the pixels of level 0 that each
/// pixel spans.
std::vector<double> ProfileOf(std::int64_t downsample, double spot) {
  const std::int64_t side = (kSide + downsample - 1) / downsample;
  std::vector<double> profile(static_cast<std::size_t>(side));
  for (std::int64_t at = 0; at < side; ++at) {
    for (std::int64_t i = 0; i < downsample; ++i) {
      const double d = static_cast<double>(at * downsample + i) + 0.5 - spot;
      if (std::abs(d) > 8 * kSpotSigma) continue;
      profile[static_cast<std::size_t>(at)] +=
          std::exp(-d * d / (2 * kSpotSigma * kSpotSigma)) / static_cast<double>(downsample);
    }
  }
  return profile;
}

std::vector<float> LevelOf(std::int64_t downsample, double spot_y, double spot_x) {
  const std::vector<double> down = ProfileOf(downsample, spot_y);
  const std::vector<double> along = ProfileOf(downsample, spot_x);
  std::vector<float> level(down.size() * along.size());
  for (std::size_t y = 0; y < down.size(); ++y) {
    if (down[y] == 0) continue;
    for (std::size_t x = 0; x < along.size(); ++x) {
      level[y * along.size() + x] = static_cast<float>(down[y] * along[x]);
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
             "], batch: {global_size: 2, dtype: float32}}"),
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

/// A level of a label image: 1 where a pixel's centre lies within `radius` of the spot.
std::vector<std::byte> LabelsOf(std::int64_t downsample, const Place& spot, double radius) {
  const std::int64_t side = (kSide + downsample - 1) / downsample;
  const auto scale = static_cast<double>(downsample);
  std::vector<std::byte> level(static_cast<std::size_t>(side * side));
  for (std::int64_t y = 0; y < side; ++y) {
    const double dy = (static_cast<double>(y) + 0.5) * scale - spot.y;
    if (std::abs(dy) > radius) continue;
    for (std::int64_t x = 0; x < side; ++x) {
      const double dx = (static_cast<double>(x) + 0.5) * scale - spot.x;
      if (dy * dy + dx * dx > radius * radius) continue;
      level[static_cast<std::size_t>(y * side + x)] = std::byte{1};
    }
  }
  return level;
}

/// The labels of the chain's source box, as the decode stage takes them.
std::vector<std::byte> LabelSourceOf(const ViewWindow& window, const Extent& source,
                                     const std::vector<std::byte>& level, std::int64_t side) {
  std::vector<std::byte> finer(static_cast<std::size_t>(window.box.height * window.box.width));
  for (std::int64_t i = 0; i < window.box.height * window.box.width; ++i) {
    const std::int64_t y = window.box.y + i / window.box.width;
    const std::int64_t x = window.box.x + i % window.box.width;
    if (y < 0 || x < 0 || y >= side || x >= side) continue;
    finer[static_cast<std::size_t>(i)] = level[static_cast<std::size_t>(y * side + x)];
  }
  if (window.IsPlain()) return finer;
  std::vector<std::byte> out(static_cast<std::size_t>(source.y * source.x));
  const TensorView from = ContiguousView<3>(finer.data(), DType::kUint8,
                                            {window.box.height, window.box.width, std::int64_t{1}});
  const TensorView to =
      ContiguousView<3>(out.data(), DType::kUint8, {source.y, source.x, std::int64_t{1}});
  EXPECT_TRUE(ops::TakeNearest(from, window.y, window.x, to).ok());
  return out;
}

/// The place in the finished patch that a place in the chain's source goes to; both count from the
/// corner of the first pixel.
Place FinishedPlace(const ops::PatchGeometry& drawn, const Place& source) {
  const double y = source.y - 0.5, x = source.x - 0.5;
  if (!drawn.whole_pixels) {
    const ops::AffineMap& m = drawn.map;
    const double det = double{m.yy} * m.xx - double{m.yx} * m.xy;
    return {(m.xx * (y - m.y0) - m.yx * (x - m.x0)) / det + 0.5,
            (m.yy * (x - m.x0) - m.xy * (y - m.y0)) / det + 0.5};
  }
  // A flip or a rotation by whole pixels: the first finished pixel and its two neighbours give the
  // axes.
  const auto at = [&](std::int64_t i, std::int64_t j) {
    const auto place = ops::SourceOf(drawn.window, i, j);
    return Place{static_cast<double>(place.y), static_cast<double>(place.x)};
  };
  const Place origin = at(0, 0), down = at(1, 0), right = at(0, 1);
  const double dy = y - origin.y, dx = x - origin.x;
  return {dy * (down.y - origin.y) + dx * (down.x - origin.x) + 0.5,
          dy * (right.y - origin.y) + dx * (right.x - origin.x) + 0.5};
}

/// A spot near the middle of some patches: where it is in the finished image and in the
/// mask, against where level 0 says it must be.
void ExpectSpotUnderMask(const Stream& stream, double limit) {
  const Extent source = stream.chain.source_extent(), patch = stream.plan.config().patch;
  for (std::uint64_t ordinal = 0; ordinal < 3; ++ordinal) {
    const auto spec = stream.plan.DeriveSpec(0, ordinal);
    ASSERT_TRUE(spec.ok());
    const plan::PlannedView view = stream.plan.ViewOf(0, 0);
    const auto downsample = static_cast<std::int64_t>(view.downsample_y);
    const std::int64_t side = (kSide + downsample - 1) / downsample;
    const Box& box = spec->box;
    const double to_patch = static_cast<double>(patch.y) / static_cast<double>(view.source.y);
    const Place in_level{static_cast<double>(box.y) + 0.53 * static_cast<double>(box.height),
                         static_cast<double>(box.x) + 0.46 * static_cast<double>(box.width)};
    const Place spot{in_level.y * view.downsample_y, in_level.x * view.downsample_x};
    const ViewWindow window = WindowOf(stream.plan, stream.chain, *spec, 0);
    auto tile = SourceOf(window, source, LevelOf(downsample, spot.y, spot.x), side);
    auto labels = LabelSourceOf(window, source, LabelsOf(downsample, spot, 24), side);
    std::vector<float> image(static_cast<std::size_t>(patch.Pixels()));
    std::vector<std::uint8_t> mask(image.size());
    std::vector<std::byte> scratch;
    const auto view_of = [&](void* data, DType dtype) {
      return ContiguousView<3>(static_cast<std::byte*>(data), dtype, {source.y, source.x, 1});
    };
    ASSERT_TRUE(stream.chain
                    .Run(view_of(tile.data(), DType::kFloat32), spec->key,
                         std::as_writable_bytes(std::span(image)), scratch)
                    .ok());
    ASSERT_TRUE(
        stream.chain.RunLabels(view_of(labels.data(), DType::kUint8), spec->key, mask, scratch)
            .ok());
    const double margin_y = static_cast<double>(source.y - patch.y) / 2;
    const double margin_x = static_cast<double>(source.x - patch.x) / 2;
    const Place expected =
        FinishedPlace(stream.chain.DrawGeometry(spec->key),
                      {(in_level.y - static_cast<double>(box.y)) * to_patch + margin_y,
                       (in_level.x - static_cast<double>(box.x)) * static_cast<double>(patch.x) /
                               static_cast<double>(view.source.x) +
                           margin_x});
    const Place found = CentreOf(image, patch.x);
    const Place labelled = CentreOf({mask.begin(), mask.end()}, patch.x);
    EXPECT_NEAR(found.y, expected.y, limit) << ordinal;
    EXPECT_NEAR(found.x, expected.x, limit) << ordinal;
    EXPECT_NEAR(labelled.y, expected.y, limit) << ordinal << " mask";
    EXPECT_NEAR(labelled.x, expected.x, limit) << ordinal << " mask";
  }
}

TEST(ViewWindow, LandmarksStayUnderTheirMaskThroughEveryGeometry) {
  for (const char* patch :
       {"{size: [128, 128], level: 0}", "{size: [128, 128], level: 1}",
        "{size: [128, 128], level: 2}", "{size: [128, 128], mpp: [0.5]}",
        "{size: [128, 128], mpp: [0.7]}", "{size: [128, 128], mpp: [1.37]}",
        "{size: [128, 128], mpp: [2.6]}", "{size: [128, 128], mpp: [0.4], upsample: true}"}) {
    for (const char* augment :
         {"", "flip", "rotate90", "{crop: {margin: [9, 6]}}",
          "{affine: {p: 1, degrees: [-180, 180], scale: [0.8, 1.25]}}",
          "flip, rotate90, {affine: {p: 1, degrees: [-30, 30], translate: [0.05, 0.05]}}"}) {
      SCOPED_TRACE(StrCat(patch, " ", augment));
      ExpectSpotUnderMask(StreamOf(patch, augment), 0.5);
    }
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
