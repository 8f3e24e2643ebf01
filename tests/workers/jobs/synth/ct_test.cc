// Every fault of `synth ct` gets its verdict, and unusual but valid series give the same voxels as
// the normal one.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/sources/slide_fixtures.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"
#include "workers/jobs/synth/synth.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Faults, and the verdict that each must get.
constexpr std::pair<std::string_view, std::string_view> kVerdicts[] = {
    {"none", "uniform"},
    {"missing-slice", "gap"},
    {"duplicate-slice", "duplicate"},
    {"tilt", "tilted"},
    {"tilt-back", "tilted"},
    {"variable-steps", "variable"},
    {"shifted-slice", "variable"},
    {"shuffled-names", "uniform"},
    {"mixed-orientation", "mixed"},
    {"mixed-spacing", "mixed"},
    {"mixed-size", "mixed"},
    {"mixed-kernel", "mixed"},
    {"frame-of-reference", "mixed"},
    {"frame-a-slice", "uniform"},
    {"localiser-among", "mixed"},
    {"no-rescale", "mixed"},
    {"flipped-rows", "uniform"},
    {"sagittal", "uniform"},
    {"no-position", "not-a-volume"},
    {"over-time", "duplicate"},
    {"slope-change", "uniform"},
    {"fractional-slope", "uniform"},
    {"signedness", "uniform"},
    {"high-bits", "uniform"},
    {"enhanced", "uniform"},
    {"frame-order", "uniform"},
    {"mr", "not-ct"},
    {"not-hu", "not-ct"},
    {"localiser", "not-a-volume"},
    {"secondary-capture", "not-a-volume"},
    {"burned-in", "not-a-volume"},
    {"single-slice", "not-a-volume"},
    {"two-series", "uniform"},
    {"no-extension", "uniform"},
    {"truncated", "uniform"},
    {"implicit", "uniform"},
    {"big-endian", "uniform"},
    {"deflated", "uniform"},
    {"jpeg", "uniform"},
    {"jpeg-ls", "uniform"},
    {"rle", "uniform"}};

SynthCtOptions With(std::string_view fault) {
  SynthCtOptions options;
  options.size = {12, 40, 48};
  options.fault = fault;
  return options;
}

StatusOr<Volume> Made(const TemporaryFolder& folder, std::string_view fault,
                      GeometryPolicy policy = GeometryPolicy::kRefuse) {
  const std::string path = folder.File(StrCat(fault, "-", NameOf(policy)));
  PB_RETURN_IF_ERROR(SynthCt(Folders::OfThisUser(), path, With(fault)).status());
  return ReadCanonical(path, policy);
}

TEST(SynthCt, EveryFaultGetsItsVerdict) {
  TemporaryFolder folder;
  std::map<std::string, int> verdicts;
  for (const auto& [name, verdict] : kVerdicts) {
    const std::string path = folder.File(std::string(name));
    const auto files = SynthCt(Folders::OfThisUser(), path, With(name));
    ASSERT_TRUE(files.ok()) << name << ": " << files.status();
    const auto series = SeriesBelow(path);
    ASSERT_EQ(series.size(), name == "two-series" ? 2u : 1u) << name;
    const Judgement judgement = Judge(series[0]);
    EXPECT_EQ(NameOf(judgement.verdict), verdict) << name << ": " << ToString(series[0], judgement);
    ++verdicts[std::string(NameOf(judgement.verdict))];
    if (judgement.verdict == Verdict::kUniform) continue;
    EXPECT_FALSE(judgement.reason.empty()) << name;
    EXPECT_THAT(judgement.reason, Not(HasSubstr(".dcm"))) << name;
    EXPECT_THAT(judgement.reason, Not(testing::ContainsRegex("(^| )1 (slices|places|files)")));
    const auto refused = ReadDicomVolume(Folders::OfThisUser(), series[0], judgement,
                                         GeometryPolicy::kRefuse, nullptr);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_THAT(refused.status().message(), HasSubstr(std::string(verdict)));
    if (judgement.verdict != Verdict::kTilted) {
      EXPECT_THAT(ToString(series[0], judgement), HasSubstr(".dcm")) << name;
    }
  }
  EXPECT_EQ(verdicts.size(), 8u);  // each of them at least once
  SynthCtOptions options;
  for (const Option& option : options.Options()) {
    if (option.name == "--fault") EXPECT_EQ(option.choices.size(), std::size(kVerdicts));
  }
}

TEST(SynthCt, WhatIsOnlyUnusualGivesTheSameVoxels) {
  TemporaryFolder folder;
  const auto plain = Made(folder, "none");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->size, Extent(12, 40, 48));
  for (const char* fault :
       {"shuffled-names", "slope-change", "signedness", "high-bits", "enhanced", "frame-order",
        "no-extension", "implicit", "big-endian", "deflated", "jpeg", "jpeg-ls", "rle"}) {
    const auto volume = Made(folder, fault);
    ASSERT_TRUE(volume.ok()) << fault << ": " << volume.status();
    EXPECT_EQ(volume->dtype, DType::kInt16) << fault;
    EXPECT_EQ(volume->voxels, plain->voxels) << fault;
    EXPECT_EQ(LpsOf(volume->affine), LpsOf(plain->affine)) << fault;
  }
  const auto fractional = Made(folder, "fractional-slope");
  ASSERT_TRUE(fractional.ok()) << fractional.status();
  EXPECT_EQ(fractional->dtype, DType::kFloat32);
  for (std::size_t i = 0; i < plain->voxels.size() / 2; ++i) {
    ASSERT_LE(std::abs(ValueOf(*fractional, i) - ValueOf(*plain, i)), 0.25);
  }
}

TEST(SynthCt, CanonicalAxesRunToSuperiorPosteriorLeft) {
  TemporaryFolder folder;
  for (const char* fault : {"none", "flipped-rows", "sagittal"}) {
    const auto volume = Made(folder, fault);
    ASSERT_TRUE(volume.ok()) << fault << ": " << volume.status();
    EXPECT_EQ(OrientationOf(volume->affine), "LPS") << fault;
    const auto series = SeriesBelow(folder.File(StrCat(fault, "-refuse")));
    const auto source = ReadDicomVolume(Folders::OfThisUser(), series[0], Judge(series[0]),
                                        GeometryPolicy::kRefuse, nullptr);
    ASSERT_TRUE(source.ok());
    // A voxel is found under the place it has in the patient, in either order.
    const Matrix4 lps = LpsOf(volume->affine);
    for (const auto& [i, j, k] : {std::array{3, 5, 7}, std::array{47, 39, 11}}) {
      const Vec3 place = source->affine.At(i, j, k) - volume->affine.origin;
      const auto along = [&](std::size_t c) {
        const Vec3 step{lps[0][c], lps[1][c], lps[2][c]};
        return std::llround(Dot(place, step) / Dot(step, step));
      };
      const Point at{along(2), along(1), along(0)};
      ASSERT_TRUE(at.Inside(volume->size)) << fault;
      EXPECT_EQ(ValueOf(*volume, static_cast<std::size_t>(IndexOf(volume->size, at))),
                ValueOf(*source, static_cast<std::size_t>(IndexOf(source->size, {k, j, i}))))
          << fault;
    }
  }
}

TEST(SynthCt, ResamplingFillsAGapBetweenItsNeighbours) {
  TemporaryFolder folder;
  const auto plain = Made(folder, "none");
  const auto even = Made(folder, "missing-slice", GeometryPolicy::kResample);
  ASSERT_TRUE(even.ok()) << even.status();
  ASSERT_EQ(even->size, plain->size);
  const auto plane = static_cast<std::size_t>(plain->size.y * plain->size.x);
  for (std::size_t z = 0; z < 12; ++z) {
    for (std::size_t i = z * plane; i < (z + 1) * plane; ++i) {
      const double expected = z == 6 ? (ValueOf(*plain, i - plane) + ValueOf(*plain, i + plane)) / 2
                                     : ValueOf(*plain, i);
      ASSERT_LE(std::abs(ValueOf(*even, i) - expected), 0.5) << "slice " << z;
    }
  }
}

TEST(SynthCt, ResamplingStraightensATiltWithoutLosingAnything) {
  TemporaryFolder folder;
  const auto sheared = Made(folder, "tilt", GeometryPolicy::kAccept);
  const auto even = Made(folder, "tilt", GeometryPolicy::kResample);
  ASSERT_TRUE(sheared.ok() && even.ok()) << sheared.status() << even.status();
  EXPECT_GT(SkewOf(sheared->affine), 0.2);
  EXPECT_LT(SkewOf(even->affine), 1e-9);
  // 15 degrees over 11 steps of 2.5 mm shift the last slice by 7.1 mm: ten rows of 0.78125 mm.
  EXPECT_EQ(even->size.y, 40 + 10);
  EXPECT_NEAR(Norm(even->affine.z), 2.5 * std::cos(15 * 3.14159265358979 / 180), 1e-6);
  const auto sum = [](const Volume& v) {
    double total = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(v.size.Pixels()); ++i) {
      total += ValueOf(v, i) + 1024;
    }
    return total;
  };
  EXPECT_NEAR(sum(*even) / sum(*sheared), 1, 0.02);
}

TEST(SynthCt, ATruncatedFileIsDamage) {
  TemporaryFolder folder;
  const auto volume = Made(folder, "truncated");
  EXPECT_EQ(volume.status().code(), absl::StatusCode::kDataLoss) << volume.status();
}

TEST(SynthCt, NoPolicyTakesWhatIsNoVolume) {
  TemporaryFolder folder;
  for (const char* fault : {"duplicate-slice", "mixed-size", "localiser", "mr", "burned-in"}) {
    for (const auto policy : {GeometryPolicy::kResample, GeometryPolicy::kAccept}) {
      EXPECT_FALSE(Made(folder, fault, policy).ok()) << fault;
    }
  }
}

TEST(SynthCt, RefusesWhatItCannotMakeAndLeavesNothing) {
  TemporaryFolder folder;
  for (const Json& bad : {Json{{"fault", "no-such-fault"}}, Json{{"size", {5000, 40, 48}}},
                          Json{{"size", {12, 15, 48}}}, Json{{"step", 11}}}) {
    EXPECT_FALSE(ReadPayload<SynthCtOptions>(bad, "synth ct").ok()) << bad;
  }
  const auto cancelled = SynthCt(Folders::OfThisUser(), folder.File("a"), With("none"),
                                 [](double done) { return done < 0.5; });
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  ASSERT_TRUE(SynthCt(Folders::OfThisUser(), folder.File("a"), With("none")).ok());
  EXPECT_EQ(SynthCt(Folders::OfThisUser(), folder.File("a"), With("none")).status().code(),
            absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace patchbay::workers
