// Fits that are not those of hematoxylin and eosin, on pictures made of known stains, light and
// ink.
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "ops/stain_normalize/fit_stains.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

using Vector = std::array<double, 3>;
using Colour = std::array<double, 3>;

constexpr int kImageSide = 200;
constexpr Vector kHematoxylin = {0.5626, 0.7201, 0.4062}, kEosin = {0.2159, 0.8012, 0.5581};
constexpr Vector kDab = {0.2694, 0.57, 0.777};

/// The colours of kImageSide x kImageSide pixels, each from its place.
JudgedStains Judged(const std::function<Colour(int y, int x)>& colour) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < kImageSide; ++y) {
    for (int x = 0; x < kImageSide; ++x) {
      for (const double level : colour(y, x)) {
        pixels.push_back(static_cast<std::uint8_t>(std::clamp(std::lround(level), 0l, 255l)));
      }
    }
  }
  StainCounter counter;
  EXPECT_TRUE(counter
                  .Add(ContiguousView<3>(reinterpret_cast<std::byte*>(pixels.data()), DType::kUint8,
                                         {kImageSide, kImageSide, 3}))
                  .ok());
  return JudgeStains(counter.Take());
}

/// Two stains in all mixtures; the first tenth of the rows is background.
std::function<Colour(int, int)> Mixture(const Vector& first, const Vector& second) {
  return [=](int y, int x) {
    Colour rgb{};
    const double a = y < kImageSide / 10 ? 0 : 0.01 * (y - 20),
                 b = y < kImageSide / 10 ? 0 : 0.006 * x;
    for (std::size_t c = 0; c < 3; ++c) rgb[c] = 240 * std::exp(-a * first[c] - b * second[c]);
    return rgb;
  };
}

/// `tissue` with the right `part` of the picture in one ink.
std::function<Colour(int, int)> WithPen(const std::function<Colour(int, int)>& tissue,
                                        const Colour& ink, double part) {
  return [=](int y, int x) { return x >= kImageSide * (1 - part) ? ink : tissue(y, x); };
}

std::string MisfitOf(const JudgedStains& judged) {
  return plan::MisfitOf(judged.fit, judged.evidence);
}

void ExpectMisfit(const JudgedStains& judged, const std::string& reason) {
  const std::string misfit = MisfitOf(judged);
  EXPECT_TRUE(misfit.starts_with("not H&E: ")) << reason;
  EXPECT_NE(misfit.find(reason), std::string::npos) << misfit;
}

const Colour kGreenInk = {40, 160, 90}, kBlueInk = {30, 70, 190}, kRedInk = {200, 30, 30};

TEST(StainEvidence, MixturesOfHematoxylinAndEosinAreTakenForWhatTheyAre) {
  const JudgedStains judged = Judged(Mixture(kHematoxylin, kEosin));
  EXPECT_EQ(MisfitOf(judged), "");
  EXPECT_GT(judged.evidence.explained, 0.99);
  EXPECT_NEAR(judged.evidence.background, 240, 1);
  EXPECT_EQ(judged.evidence.pen, 0);
}

TEST(StainEvidence, DabIsNotTakenForEosin) {
  const JudgedStains judged = Judged(Mixture(kHematoxylin, kDab));
  ExpectMisfit(judged, "absorbs more blue than green, as DAB does");
  ExpectMisfit(judged, "eosin 0.2");
  ExpectMisfit(judged, "degrees from the reference, up to ");
  ExpectMisfit(judged, "100.0 % explained, background 241, pen 0.0 %");
}

TEST(StainEvidence, LightOnBlackIsNotTakenForStains) {
  const auto light = [](int y, int x) {
    const double blue = (y / 10 + x / 10) % 3 == 0 ? 180 : 0, red = y % 17 < 4 ? 120 : 0;
    return Colour{3 + red, 4 + 0.3 * red + 0.2 * blue, 5 + blue};
  };
  ExpectMisfit(Judged(light), "its background is dark");
  ExpectMisfit(Judged([](int, int) { return Colour{0, 0, 0}; }), "no fit: one_stain");
}

TEST(StainEvidence, InkIsNoStain) {
  const auto blank = [](int, int) { return Colour{250, 250, 250}; };
  for (const Colour& ink : {kGreenInk, kBlueInk, kRedInk}) {
    const JudgedStains judged = Judged(WithPen(blank, ink, 0.3));
    ExpectMisfit(judged, "pen or marker is 100.0 % of its tissue");
    EXPECT_EQ(judged.fit.macenko.fallback, plan::StainFallback::kTooFewPixels);
  }
  EXPECT_EQ(MisfitOf(Judged(blank)), "");
}

TEST(StainEvidence, InkBesideTissueIsLeftOutOfTheFit) {
  const auto tissue = Mixture(kHematoxylin, kEosin);
  const auto cut = [&](int y, int x) {
    return x >= kImageSide * 0.9 ? Colour{250, 250, 250} : tissue(y, x);
  };
  for (const Colour& ink : {kGreenInk, kBlueInk, kRedInk}) {
    const JudgedStains judged = Judged(WithPen(tissue, ink, 0.1));
    EXPECT_EQ(MisfitOf(judged), "");
    EXPECT_NEAR(judged.evidence.pen, 0.11, 0.02);
    EXPECT_EQ(judged.fit, Judged(cut).fit);
  }
}

TEST(StainEvidence, ALittleInkChangesNoFit) {
  const auto tissue = Mixture(kHematoxylin, kEosin);
  const JudgedStains judged = Judged(WithPen(tissue, kGreenInk, 0.005));
  EXPECT_GT(judged.evidence.pen, 0);
  EXPECT_LT(judged.evidence.pen, plan::kLeastPen);
  EXPECT_EQ(MisfitOf(judged), "");
  EXPECT_GT(judged.fit.tissue_pixels,
            Judged(WithPen(tissue, {250, 250, 250}, 0.005)).fit.tissue_pixels);
}

TEST(StainEvidence, EachNumberOfAFitHasItsLimit) {
  const plan::StainFit fine{.macenko = plan::DefaultMacenko(), .reinhard = plan::DefaultReinhard()};
  const auto misfit = [&](const std::function<void(plan::StainFit&)>& change) {
    plan::StainFit fit = fine;
    change(fit);
    return plan::MisfitOf(fit, std::nullopt);
  };
  const auto stain = [&](std::size_t which, const Vector& vector) {
    return misfit([&](plan::StainFit& fit) { fit.macenko.stains[which] = vector; });
  };
  EXPECT_EQ(misfit([](plan::StainFit&) {}), "");
  EXPECT_NE(stain(0, {0.869, 0.331, 0.367}).find("as a green pen does"), std::string::npos);
  EXPECT_EQ(stain(0, {0.833, 0.478, 0.28}), "");  // CMU-1-Small-Region
  EXPECT_NE(stain(0, {1, 0, 0}).find("its first stain is not hematoxylin"), std::string::npos);
  EXPECT_NE(stain(1, {0.9, 0.43, 0}).find("its second stain is not eosin"), std::string::npos);
  EXPECT_NE(stain(1, {0.54, 0.73, 0.41}).find("degrees apart"), std::string::npos);
  EXPECT_NE(stain(1, {-0.3, 0.8, 0.5}).find("the negative part -0.30"), std::string::npos);
  EXPECT_NE(misfit([](plan::StainFit& fit) {
              fit.macenko.max_concentrations[1] = 9;
            }).find("amount reaches 9.00"),
            std::string::npos);
  const auto with = [&](const plan::StainEvidence& evidence) {
    return plan::MisfitOf(fine, evidence);
  };
  EXPECT_EQ(with({.explained = 0.9, .background = 230}), "");
  EXPECT_NE(with({.explained = 0.4, .background = 230}).find("explain too little"),
            std::string::npos);
  EXPECT_NE(with({.explained = 0.9, .background = 100}).find("dark (100 of 255)"),
            std::string::npos);
  EXPECT_NE(with({.explained = 0.9, .background = 230, .pen = 0.6}).find("60.0 %"),
            std::string::npos);
}

}  // namespace
}  // namespace patchbay::ops
