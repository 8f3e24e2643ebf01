// Two analyses held against each other.
#include "runtime/cli/jobs/spectra_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "tests/runtime/model/results/spectra_documents.h"

namespace patchbay::cli {
namespace {

using results::MadeDocument;
using testing::ElementsAre;
using testing::HasSubstr;

results::SpectraDocument Parsed(const Json& json) {
  auto document = results::ParseSpectraDocument(json, "t");
  EXPECT_TRUE(document.ok()) << document.status();
  return document.ok() ? *std::move(document) : results::SpectraDocument();
}

SpectraComparison Compared(const Json& a, const Json& b, bool force = false) {
  auto comparison = CompareSpectra(Parsed(a), Parsed(b), force);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return comparison.ok() ? *std::move(comparison) : SpectraComparison();
}

std::string ComparisonRefusal(const Json& a, const Json& b, bool force = false) {
  const auto comparison = CompareSpectra(Parsed(a), Parsed(b), force);
  EXPECT_EQ(comparison.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(MessageOf(comparison.status()));
}

/// One slide whose histogram has these counts and nothing else that matters.
Json OneSlide(const std::vector<std::pair<int, std::uint64_t>>& counts) {
  Json document = MadeDocument(1);
  for (Json* part : {&document["slides"][0], &document["cohort"]}) {
    std::vector<std::uint64_t> bins(640, 0);
    for (const auto& [bin, count] : counts) bins[static_cast<std::size_t>(bin)] = count;
    (*part)["histogram"]["counts"] = bins;
  }
  return document;
}

TEST(SpectraComparison, TheSameResultIsIdentical) {
  const SpectraComparison comparison = Compared(MadeDocument(3), MadeDocument(3));
  EXPECT_TRUE(comparison.cohort.identical);
  EXPECT_TRUE(comparison.cohort.WithinStudy());
  EXPECT_EQ(comparison.cohort.mean_db.Difference(), 0);
  EXPECT_EQ(comparison.cohort.histogram_l1, 0);
  EXPECT_EQ(comparison.cohort.quantile_gap_db, 0);
  EXPECT_EQ(comparison.slides.size(), 3u);
  EXPECT_TRUE(comparison.remarks.empty());
}

TEST(SpectraComparison, TheStudysBoundsAreOnTheRightSide) {
  const Json a = MadeDocument(1);  // 40 dB, 10 dB
  const auto with = [&](double mean, double std) {
    Json b = a;
    b["cohort"]["mean_db"] = mean;
    b["cohort"]["std_db"] = std;
    return Compared(a, b).cohort;
  };
  EXPECT_TRUE(with(40.199, 10).WithinStudy());
  EXPECT_FALSE(with(40.201, 10).WithinStudy());
  EXPECT_FALSE(with(39.79, 10).WithinStudy());
  EXPECT_TRUE(with(40, 10.179).WithinStudy());
  EXPECT_FALSE(with(40, 10.181).WithinStudy());
  EXPECT_FALSE(with(40, 9.8).WithinStudy());
  EXPECT_NEAR(*with(40.2, 10).mean_db.Percent(), 0.5, 1e-9);
  EXPECT_NEAR(with(39, 10).mean_db.Difference(), -1, 1e-12);
}

TEST(SpectraComparison, PercentOfNothingIsSaidToBeNone) {
  EXPECT_EQ(FigurePair({0, 0}).Percent(), 0.0);
  EXPECT_EQ(FigurePair({0, 1}).Percent(), std::nullopt);
  EXPECT_EQ(FigurePair({-2, -1}).Percent(), 50.0);
}

TEST(SpectraComparison, DistributionsAreComparedByShares) {
  constexpr std::uint64_t kAll = 10 * 64 * 64;
  const Json a = OneSlide({{100, kAll}}), b = OneSlide({{100, kAll / 2}, {140, kAll / 2}});
  const SpectraDifference d = Compared(a, b).cohort;
  EXPECT_NEAR(d.histogram_l1, 1, 1e-12);
  // Above the median B has reached bin 140; within the bins the two draw level towards the end.
  EXPECT_NEAR(d.quantile_gap_db, 10, 0.001);
  EXPECT_NEAR(d.quantile_gap_percent, 99.9, 1e-9);
  EXPECT_FALSE(d.identical);
  const SpectraDifference apart = Compared(a, OneSlide({{300, kAll}})).cohort;
  EXPECT_NEAR(apart.histogram_l1, 2, 1e-12);
  EXPECT_NEAR(apart.quantile_gap_db, 50, 1e-9);
}

TEST(SpectraComparison, AFarTailOfNextToNothingIsNoGap) {
  constexpr std::uint64_t kAll = 10 * 64 * 64;
  const Json a = OneSlide({{100, kAll - 10}, {500, 10}}), b = OneSlide({{100, kAll}});
  EXPECT_LT(Compared(a, b).cohort.quantile_gap_db, 0.001);
}

TEST(SpectraComparison, SlidesAreMatchedByTheirIds) {
  Json a = MadeDocument(4), b = MadeDocument(4);
  a["slides"].erase(1);
  b["slides"].erase(3);
  const SpectraComparison comparison = Compared(a, b);
  EXPECT_THAT(comparison.only_a, ElementsAre("0000000000000003"));
  EXPECT_THAT(comparison.only_b, ElementsAre("0000000000000001"));
  ASSERT_EQ(comparison.slides.size(), 2u);
  EXPECT_EQ(comparison.slides[1].id, "0000000000000002");
  EXPECT_TRUE(comparison.slides[1].difference.identical);
}

TEST(SpectraComparison, ASlideIsPairedWithTheOneStoreMadeFromIt) {
  Json slides = MadeDocument(2), stores = MadeDocument(2);
  for (int i = 0; i < 2; ++i) {
    slides["slides"][i]["origin"] = slides["slides"][i]["id"];
    stores["slides"][i]["origin"] = slides["slides"][i]["id"];
    stores["slides"][i]["id"] = StrCat("f", i);
  }
  const SpectraComparison paired = Compared(slides, stores);
  ASSERT_EQ(paired.slides.size(), 2u);
  EXPECT_EQ(paired.slides[1].id, "0000000000000001");
  EXPECT_EQ(paired.slides[1].id_b, "f1");
  EXPECT_EQ(ToJson(paired)["slides"][0]["id_b"], "f0");
  EXPECT_TRUE(paired.only_a.empty() && paired.only_b.empty());

  // Neither of two stores of one slide is preferred; nor a slide or its store on one side.
  stores["slides"][1]["origin"] = slides["slides"][0]["id"];
  const SpectraComparison unclear = Compared(slides, stores);
  EXPECT_TRUE(unclear.slides.empty());
  EXPECT_THAT(unclear.only_b, ElementsAre("f0", "f1"));
  EXPECT_TRUE(Compared(stores, slides).slides.empty());
}

TEST(SpectraComparison, OtherDefinitionsAreRefusedByName) {
  const std::vector<std::pair<const char*, Json>> others = {
      {"version", 2},        {"hop", 16},  {"window", "hann"}, {"prefilter", "gauss7"},
      {"tissue_only", true}, {"level", 1}, {"floor_db", -60},  {"step_db", 0.5}};
  for (const auto& [key, value] : others) {
    Json b = MadeDocument(2);
    b["definition"][key] = value;
    EXPECT_THAT(ComparisonRefusal(MadeDocument(2), b), HasSubstr(key));
    EXPECT_TRUE(Compared(MadeDocument(2), b, true).cohort.identical) << "with force";
    EXPECT_THAT(Compared(MadeDocument(2), b, true).remarks, ElementsAre(HasSubstr(key)));
  }
  Json two = MadeDocument(2);
  two["definition"]["window"] = "hann";
  two["definition"]["hop"] = 16;
  EXPECT_THAT(ComparisonRefusal(MadeDocument(2), two),
              HasSubstr("hop is 32 in A and 16 in B; window is "
                        "rect in A and hann in B"));
}

TEST(SpectraComparison, OtherMasksAreRefused) {
  Json a = MadeDocument(2), b;
  a["definition"]["tissue_only"] = true;
  b = a;
  a["definition"]["tissue"] = {{"share", 0.5}};
  b["definition"]["tissue"] = {{"share", 0.6}};
  EXPECT_THAT(ComparisonRefusal(a, b), HasSubstr("tissue is"));
}

TEST(SpectraComparison, WhatDoesNotChangeTheMeaningIsARemark) {
  Json b = MadeDocument(2);
  b["definition"]["numerics"] = "cuda";
  b["definition"]["profile"] = "nedc";
  b["definition"]["skip_damaged"] = true;
  EXPECT_THAT(Compared(MadeDocument(2), b).remarks,
              ElementsAre("numerics is cpu in A and cuda in B",
                          "skip_damaged is false in A and true in B"));
}

TEST(SpectraComparison, WhatCannotBeComparedIsRefusedEvenWithForce) {
  EXPECT_THAT(ComparisonRefusal(MadeDocument(2), MadeDocument(0), true), HasSubstr("B: no slide"));
  EXPECT_THAT(ComparisonRefusal(MadeDocument(0), MadeDocument(2), true), HasSubstr("A: no slide"));
  Json b = MadeDocument(2);
  for (Json* part : {&b["cohort"], &b["slides"][0], &b["slides"][1]}) {
    (*part)["histogram"]["bin_db"] = 0.5;
  }
  EXPECT_THAT(ComparisonRefusal(MadeDocument(2), b, true), HasSubstr("different bins"));
}

TEST(SpectraComparison, SaysEverythingToPrograms) {
  Json b = MadeDocument(2);
  b["cohort"]["mean_db"] = 41.0;
  const Json json = ToJson(Compared(MadeDocument(2), b));
  EXPECT_NEAR(json["mean_db"]["difference"].get<double>(), 0.95, 1e-9);
  EXPECT_FALSE(json["within_study"].get<bool>());
  EXPECT_EQ(json["slides"].size(), 2u);
  EXPECT_TRUE(json["slides"][0]["identical"].get<bool>());
  EXPECT_EQ(json["study"]["mean_percent"], 0.5);
}

}  // namespace
}  // namespace patchbay::cli
