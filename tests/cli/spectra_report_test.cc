// The end of an analysis: the report from a job's last row and its summary.
#include <gtest/gtest.h>

#include "runtime/cli/jobs/slide_job.h"

namespace patchbay::cli {
namespace {

protocol::JobRow FailedSpectraRow() {
  protocol::JobRow row;
  row.job = 7;
  protocol::FailedTask failed;
  failed.group = 3;
  failed.outcome = OutcomeOf(absl::InvalidArgumentError("its worker died"));
  row.failed = {failed};
  return row;
}

Json SpectraSummary() {
  return *ParseJson(
      R"({"definition": {"version": 1, "profile": "", "frame": 256, "hop": 128, "window": "hann",
                   "prefilter": "none", "channel": "grey", "tissue_only": false,
                   "skip_damaged": false, "numerics": "cpu", "level": 0, "floor_db": -100,
                   "step_db": 0.25},
    "plots": ["histogram.png"],
    "cohort": {"frames": 30, "frames_skipped": 2, "mean_db": 40.5, "std_db": 9.5, "focus_db": -20},
    "slides": [{"source_index": 1, "id": "ab", "frames": 30, "frames_skipped": 2, "mean_db": 40.5,
                "std_db": 9.5, "focus_db": -20, "outlier": true, "outlier_reasons": ["flat"],
                "pixel_bytes": 3000000, "already_there": false}],
    "failed": [{"source_index": 0, "outcome": {"code": 3, "cause": "too small"}},
               {"source_index": 2, "outcome": {"code": 0}},
               {"source_index": 9, "outcome": {"code": 0}}],
    "duplicates": [{"index": 3, "id": "ab"}]})",
      "t");
}

/// As the command makes it, of two seconds into /out.
StatusOr<SlideReport> ReportOfSpectra(const protocol::JobRow& job, const Json& summary,
                                      const std::vector<std::string>& slides) {
  SlideReport report;
  report.slides = slides;
  report.out = "/out";
  report.seconds = 2;
  PB_RETURN_IF_ERROR(kSpectraKind.fill(job, summary, report));
  return report;
}

TEST(SpectraReport, JoinsFiguresAndReasonsWithTheirSources) {
  const auto report = ReportOfSpectra(FailedSpectraRow(), SpectraSummary(),
                                      {"/a.svs", "/b.svs", "/c.svs", "/d.svs"});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->own["slides"][0]["source"], "/b.svs");
  ASSERT_EQ(report->failed.size(), 3u);
  EXPECT_EQ(report->failed[0].source, "/a.svs");
  EXPECT_EQ(TextOf(report->failed[0].outcome), "too small");
  EXPECT_EQ(TextOf(report->failed[1].outcome), "its worker died");
  EXPECT_EQ(report->failed[2].source, "slide 9");
  EXPECT_EQ(TextOf(report->failed[2].outcome), "not finished");
  EXPECT_EQ(report->own["duplicates"], Json({"/d.svs"}));
}

TEST(SpectraReport, SaysEverythingToPrograms) {
  const auto report = ReportOfSpectra(FailedSpectraRow(), SpectraSummary(), {"/a.svs", "/b.svs"});
  ASSERT_TRUE(report.ok()) << report.status();
  const Json json = ToJson(*report);
  EXPECT_EQ(json["bytes_per_s"], 1.5e6);
  EXPECT_EQ(json["pixel_bytes"], 3000000);
  EXPECT_EQ(json["spectra"], "/out/spectra.json");
  EXPECT_EQ(json["plots"][0], "/out/histogram.png");
  EXPECT_EQ(json["slides"][0]["outlier_reasons"][0], "flat");
  EXPECT_EQ(json["cohort"]["mean_db"], 40.5);
}

TEST(SpectraReport, AJobThatMeasuredNothingHasNoCohort) {
  Json summary = SpectraSummary();
  summary["cohort"] = nullptr;
  summary["slides"] = summary["plots"] = Json::array();
  const auto report = ReportOfSpectra({}, summary, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(ToJson(*report)["cohort"].is_null());
}

TEST(SpectraReport, RefusesASummaryOfAnotherShape) {
  EXPECT_FALSE(ReportOfSpectra({}, Json::array(), {}).ok());
  for (const char* key : {"definition", "cohort", "slides", "failed", "duplicates", "plots"}) {
    Json summary = SpectraSummary();
    summary.erase(key);
    const auto report = ReportOfSpectra({}, summary, {});
    EXPECT_FALSE(report.ok()) << key;
    EXPECT_NE(MessageOf(report.status()).find(key), std::string_view::npos) << report.status();
  }
  Json wrong = SpectraSummary();
  wrong["slides"][0]["mean_db"] = "high";
  EXPECT_FALSE(ReportOfSpectra({}, wrong, {}).ok());
  wrong = SpectraSummary();
  wrong["plots"] = {1};
  EXPECT_FALSE(ReportOfSpectra({}, wrong, {}).ok());
}

}  // namespace
}  // namespace patchbay::cli
