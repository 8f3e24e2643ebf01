// The end of an ingest: the report from a job's last row and its summary.
#include <gtest/gtest.h>

#include "runtime/cli/jobs/slide_job.h"

namespace patchbay::cli {
namespace {

protocol::JobRow FailedIngestRow(std::uint32_t group) {
  protocol::JobRow row;
  row.job = 7;
  protocol::FailedTask failed;
  failed.group = group;
  failed.outcome = OutcomeOf(absl::InvalidArgumentError("not a slide"));
  row.failed = {failed};
  return row;
}

Json IngestSummary() {
  return *ParseJson(R"({"stores": [{"name": "ab.ome.zarr", "source_index": 1, "source_bytes": 10,
    "stored_bytes": 70, "digest": "d", "pixel_digest": "p", "already_there": false, "warnings": []}],
    "missing": [0]})",
                    "t");
}

/// As the command makes it, but for its failure.
StatusOr<SlideReport> ReportOfIngest(const protocol::JobRow& job, const Json& summary,
                                     const std::vector<std::string>& slides) {
  SlideReport report;
  report.slides = slides;
  PB_RETURN_IF_ERROR(kIngestKind.fill(job, summary, report));
  return report;
}

TEST(IngestReport, JoinsStoresAndReasonsWithTheirSources) {
  const auto report = ReportOfIngest(FailedIngestRow(1), IngestSummary(), {"/a.svs", "/b.svs"});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ToJson(*report)["stores"][0]["source"], "/b.svs");
  EXPECT_EQ(report->failed[0].source, "/a.svs");
  EXPECT_EQ(TextOf(report->failed[0].outcome), "not a slide");
  EXPECT_EQ(ToJson(*report)["ratio"], 7.0);
}

TEST(IngestReport, CopiesOfASlideStandUnderTheirStoreAndCountOnce) {
  Json summary = IngestSummary();
  summary["stores"].push_back(summary["stores"][0]);
  summary["stores"][1]["source_index"] = 0;
  summary["stores"][1]["already_there"] = true;
  const auto report = ReportOfIngest({}, summary, {"/a.svs", "/b.svs"});
  ASSERT_TRUE(report.ok()) << report.status();
  const Json json = ToJson(*report);
  ASSERT_EQ(json["stores"].size(), 1u);
  EXPECT_EQ(json["stores"][0]["copies"], Json({"/a.svs"}));
  EXPECT_EQ(json["stores"][0]["already_there"], false);
  EXPECT_EQ(json["source_bytes"], 10);
}

TEST(IngestReport, WarningsStandWithTheirStore) {
  Json summary = IngestSummary();
  summary["stores"][0]["warnings"] = {"12 voxels are NaN"};
  const auto report = ReportOfIngest({}, summary, {"/a.nii", "/b.nii"});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ToJson(*report)["stores"][0]["warnings"], Json({"12 voxels are NaN"}));
}

TEST(IngestReport, CallsSlidesByNumberWhenTheirNamesAreUnknown) {
  const auto report = ReportOfIngest(FailedIngestRow(0), IngestSummary(), {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(ToJson(*report)["stores"][0]["source"], "slide 1");
  EXPECT_EQ(TextOf(report->failed[0].outcome), "not finished");
}

TEST(IngestReport, RefusesASummaryOfAnotherShape) {
  EXPECT_FALSE(ReportOfIngest({}, Json::array(), {}).ok());
  EXPECT_FALSE(ReportOfIngest({}, *ParseJson(R"({"stores": [{}], "missing": []})", "t"), {}).ok());
  EXPECT_FALSE(ReportOfIngest({}, *ParseJson(R"({"stores": [], "missing": ["x"]})", "t"), {}).ok());
}

}  // namespace
}  // namespace patchbay::cli
