// The request of a stream's job: every field comes back.
#include "runtime/model/jobs/stream_request.h"

#include <gtest/gtest.h>

#include "runtime/model/plan/planned_manifest.h"
#include "tests/described.h"

namespace patchbay {
namespace {

TEST(StreamRequest, EveryFieldComesBack) {
  test::ExpectEveryFieldComesBack<plan::StreamStart>();
  test::ExpectEveryFieldComesBack<plan::RowPins>();
  test::ExpectEveryFieldComesBack<plan::PlannedManifest>();
}

TEST(StreamRequest, ARowOfATableComesBackWithAllThatWorkersNeed) {
  plan::PlannedRow row{.path = "a.svs",
                       .content = "00ff",
                       .mpp = 0.25,
                       .positions = {{1, 2}, {30, 4}},
                       .position_labels = {{255, 7}},
                       .groups = {0, 3},
                       .label = -1,
                       .scanner = 2,
                       .trains = false};
  row.pins = {.sets = {{"tissue", {}}}};
  row.pins->image.bytes.fill(5);
  const plan::StreamManifest manifest{.images = {"/data/"},
                                      .table = plan::PlannedTable{"/stores", {row}, {{0, 2}}},
                                      .stain_references = {{"", "/ref.png"}}};
  const auto back = FromJson<plan::StreamManifest>(JsonOf(manifest), "manifest");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->table->rows, manifest.table->rows);
  EXPECT_EQ(JsonOf(*back), JsonOf(manifest));
  EXPECT_EQ(DumpJson(JsonOf(plan::PlannedRow{.path = "b"})), R"({"path":"b"})");
  Json wrong = JsonOf(manifest);
  wrong["table"]["rows"][0]["mpp"] = -1;
  EXPECT_NE(MessageOf(FromJson<plan::StreamManifest>(wrong, "manifest").status())
                .find("manifest: key 'table.rows[0].mpp': expected a number in"),
            std::string::npos);
}

}  // namespace
}  // namespace patchbay
