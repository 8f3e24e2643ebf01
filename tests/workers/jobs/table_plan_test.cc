// Planning a stream from a table: the store or slide of each row, and refusals.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/hash.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/planned_manifest.h"
#include "runtime/model/stream/planned_stream.h"
#include "tests/contract/known_ops.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/process/local_run.h"
#include "workers/process/task_runner.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

constexpr char kSlideHash[] = "ed92d5a9f2e86df67640d6f92ce3e231419ce127131697fbbce42ad5e002c8a7";
const std::string kOtherHash(64, 'a');

class TablePlanTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("PATCHBAY_TEST_DATA");
    if (data == nullptr || !fs::exists(fs::path(data) / "wsi/CMU-1-Small-Region.svs")) {
      GTEST_SKIP() << "needs the slides of PATCHBAY_TEST_DATA";
    }
    data_ = data;
    root_ = fs::canonical(fs::temp_directory_path()) / ("table_plan_" + Hex64(RandomU64()));
    fs::create_directories(root_ / "stores");
    fs::create_directories(root_ / "slides");
    fs::copy(data_ / "wsi/CMU-1-Small-Region.svs", root_ / "slides/Jane Doe.svs");
    context_.signals = &signals_;
    context_.rights.read = {root_.string()};
    context_.state_folder = root_ / "state";
    context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
    const auto config = plan::ParseRunConfig(
        "dataset: x\npatch: {size: [8, 8]}\nbatch: {global_size: 4}\n", "test");
    ASSERT_TRUE(config.ok()) << config.status();
    context_.payload = plan::ToJson(*config);
  }
  void TearDown() override {
    if (!root_.empty()) fs::remove_all(root_);
  }

  /// A small store that records its source.
  void AddStore(const std::string& name, const std::string& source) {
    const fs::path store = root_ / "stores" / name;
    fs::copy(data_ / "zarr/ome/simple_0.5", store, fs::copy_options::recursive);
    std::ifstream in(store / "zarr.json");
    Json root = Json::parse(in);
    root["attributes"]["patchbay"]["source_sha256"] = source;
    fs::permissions(store / "zarr.json", fs::perms::owner_all);
    std::ofstream(store / "zarr.json") << root.dump();
  }

  struct Row {
    std::string path, content;
  };
  Json Manifest(const std::vector<Row>& rows) const {
    plan::StreamManifest manifest{.images = {root_.string() + "/"}};
    manifest.table.emplace().stores = (root_ / "stores").string();
    for (const Row& row : rows) {
      manifest.table->rows.push_back({.path = row.path, .content = row.content.substr(0, 32)});
    }
    return JsonOf(manifest);
  }
  StatusOr<Json> Plan(const std::vector<Row>& rows) {
    context_.manifest = Manifest(rows);
    PB_ASSIGN_OR_RETURN(const std::string result, RunJobHere("stream.plan", context_));
    return ParseJson(result, "result");
  }
  std::string ErrorOf(const std::vector<Row>& rows) {
    return std::string(MessageOf(Plan(rows).status()));
  }
  /// The images' paths below the root and their row numbers.
  std::string Planned(const std::vector<Row>& rows) {
    const auto result = Plan(rows);
    if (!result.ok()) return std::string(MessageOf(result.status()));
    const Json& manifest = (*result)["manifest"];
    const auto where = FromJson<plan::PlannedManifest>(manifest, "manifest");
    EXPECT_TRUE(where.ok()) << where.status();
    std::string text = DumpJson(manifest["rows"]);
    for (const std::string& path : where->Paths())
      text += " " + path.substr(root_.string().size() + 1);
    return text;
  }

  fs::path data_, root_;
  TaskSignals signals_;
  TaskContext context_{Folders::OfThisUser(), ops::Table()};
};

TEST_F(TablePlanTest, ARowIsTheStoreOfItsContentElseItsSlide) {
  const Row slide{"slides/Jane Doe.svs", ""};
  EXPECT_EQ(Planned({slide}), "[0] slides/Jane Doe.svs");
  EXPECT_EQ(Planned({{slide.path, kSlideHash}}), "[0] slides/Jane Doe.svs");
  AddStore("p1.zarr", kOtherHash);
  EXPECT_EQ(Planned({{"slides/archived.svs", kOtherHash}}), "[0] stores/p1.zarr");
  AddStore("p2.zarr", kSlideHash);
  EXPECT_EQ(Planned({slide}), "[0] stores/p2.zarr") << "found by hashing the slide";
  EXPECT_EQ(Planned({{"slides/archived.svs", kOtherHash}, slide}),
            "[0,1] stores/p1.zarr stores/p2.zarr");
  EXPECT_EQ(Planned({{"stores/p1.zarr", ""}}), "[0] stores/p1.zarr");
}

TEST_F(TablePlanTest, RefusesWhatIsNotTheRowsContent) {
  EXPECT_NE(
      ErrorOf({{"slides/Jane Doe.svs", kOtherHash}}).find("differs from the row's content_hash"),
      std::string::npos);
  AddStore("p1.zarr", kSlideHash);
  EXPECT_NE(ErrorOf({{"stores/p1.zarr", kOtherHash}}).find("was made from other content"),
            std::string::npos);
  EXPECT_NE(ErrorOf({{"slides/none.svs", kOtherHash}}).find("no store has the row's content_hash"),
            std::string::npos);
  AddStore("p1-again.zarr", kSlideHash);
  const std::string twice = ErrorOf({{"slides/Jane Doe.svs", kSlideHash}});
  EXPECT_NE(twice.find("two stores of the content of image 0"), std::string::npos) << twice;
}

TEST_F(TablePlanTest, LeavesOutABadRowAndKeepsTheNumbersOfTheOthers) {
  context_.payload["on_bad_image"] = "skip";
  EXPECT_EQ(Planned({{"slides/none.svs", ""}, {"slides/Jane Doe.svs", ""}}),
            "[1] slides/Jane Doe.svs");
}

TEST_F(TablePlanTest, TheLabelsOfAColumnGoWithTheirRows) {
  context_.payload["on_bad_image"] = "skip";
  context_.payload["labels"] = {{"label", {{"column", "isup"}}}};
  const std::vector<Row> rows = {{"slides/none.svs", ""}, {"slides/Jane Doe.svs", ""}};
  EXPECT_NE(ErrorOf(rows).find("key 'labels.label.column'"), std::string::npos);
  context_.manifest = Manifest(rows);
  context_.manifest["table"]["rows"][0]["label"] = 7;
  context_.manifest["table"]["rows"][1]["label"] = 4;
  const auto result = RunJobHere("stream.plan", context_);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto planned = DecodePlannedStream(*result);
  ASSERT_TRUE(planned.ok()) << planned.status();
  const auto plan = plan::ParsePlan(planned->plan);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->images().size(), 1u);
  EXPECT_EQ(plan->images()[0].label, 4);
}

TEST_F(TablePlanTest, TheOrderOfATableOfPlacesIsThatOfTheRowsThatAreLeft) {
  fs::copy(root_ / "slides/Jane Doe.svs", root_ / "slides/b.svs");
  context_.payload["on_bad_image"] = "skip";
  context_.payload["sampling"] = {{"positions", "listed.csv"}, {"order", "sequential"}};
  context_.manifest =
      Manifest({{"slides/none.svs", ""}, {"slides/Jane Doe.svs", ""}, {"slides/b.svs", ""}});
  const std::vector<plan::PlanePoint> one = {{0, 5}}, two = {{0, 1}, {0, 2}};
  Json& table = context_.manifest["table"];
  table["rows"][0]["positions"] = plan::EncodePositions(one);
  table["rows"][1]["positions"] = plan::EncodePositions(two);
  table["rows"][2]["positions"] = plan::EncodePositions(one);
  EXPECT_EQ(MessageOf(RunJobHere("stream.plan", context_).status()),
            "stream manifest: table: key 'positions_order' is missing");
  const std::vector<plan::ListedRun> order = {{1, 1}, {0, 1}, {2, 1}, {1, 1}};
  table["positions_order"] = plan::EncodeListedRuns(order);
  const auto result = RunJobHere("stream.plan", context_);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto planned = DecodePlannedStream(*result);
  ASSERT_TRUE(planned.ok()) << planned.status();
  const auto plan = plan::ParsePlan(planned->plan);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::string epoch;
  for (std::uint64_t i = 0; i < plan->patches_per_epoch(); ++i) {
    const auto spec = plan->DeriveSpec(0, i);
    ASSERT_TRUE(spec.ok()) << spec.status();
    epoch += StrCat(spec->image, ":", spec->box.x, " ");
  }
  EXPECT_EQ(epoch, "0:1 1:5 0:2 ");
}

TEST_F(TablePlanTest, AnMppOfTheTableThatTheFileDoesNotSayIsUsedAndRecorded) {
  const auto planned = [&](const Json& mpp) -> StatusOr<Json> {
    context_.manifest = Manifest({{"slides/Jane Doe.svs", ""}});
    context_.manifest["table"]["rows"][0]["mpp"] = mpp;
    PB_ASSIGN_OR_RETURN(const std::string result, RunJobHere("stream.plan", context_));
    return ParseJson(result, "result");
  };
  context_.payload["patch"]["mpp"] = {0.998};
  const auto stated = planned(nullptr);
  ASSERT_TRUE(stated.ok()) << stated.status();
  const Json& facts = (*stated)["manifest"]["facts"][0];
  EXPECT_EQ(facts["mpp"], 0.499);
  EXPECT_EQ(facts["levels"][0], (Json{1, 2967, 2220}));
  EXPECT_FALSE(facts.contains("stated_mpp"));
  for (const double same : {0.499, 0.49904, 0.49896}) {
    const auto plan = planned(same);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ((*plan)["plan"], (*stated)["plan"]);
    EXPECT_EQ((*plan)["manifest"], (*stated)["manifest"]);
    EXPECT_FALSE((*plan)["skipped"].contains("mpp_corrected"));
  }
  const auto corrected = planned(0.2495);
  ASSERT_TRUE(corrected.ok()) << corrected.status();
  const auto plan = plan::ParsePlan((*corrected)["plan"].get<std::string>());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->images()[0].views[0].source, (Extent{1, 32, 32}));
  EXPECT_EQ((*corrected)["manifest"]["facts"][0]["mpp"], 0.2495);
  EXPECT_EQ((*corrected)["manifest"]["facts"][0]["stated_mpp"], 0.499);
  EXPECT_EQ((*corrected)["skipped"]["mpp_corrected"][0]["reason"],
            "0.2495 um/px; the file states 0.499");
  EXPECT_TRUE(planned(0.4991).ok());
  EXPECT_TRUE((*planned(0.4991))["skipped"].contains("mpp_corrected"));
}

TEST_F(TablePlanTest, AnMppOfTheTableFillsInWhatTheFileDoesNotSay) {
  fs::copy(data_ / "wsi/CropBreastSlide-pyramid.tiff", root_ / "slides/crop.tiff");
  context_.payload["patch"]["mpp"] = {0.5};
  const auto planned = [&](const Json& mpp) -> StatusOr<Json> {
    context_.manifest = Manifest({{"slides/crop.tiff", ""}});
    context_.manifest["table"]["rows"][0]["mpp"] = mpp;
    PB_ASSIGN_OR_RETURN(const std::string result, RunJobHere("stream.plan", context_));
    return ParseJson(result, "result");
  };
  const auto filled = planned(0.5);
  ASSERT_TRUE(filled.ok()) << filled.status();
  EXPECT_EQ((*filled)["manifest"]["facts"][0]["mpp"], 0.5);
  EXPECT_EQ((*filled)["manifest"]["facts"][0]["mpp_corrected"], true);
  EXPECT_FALSE((*filled)["manifest"]["facts"][0].contains("stated_mpp"));
  EXPECT_EQ((*filled)["skipped"]["mpp_corrected"][0]["reason"], "0.5 um/px; the file states none");
  const auto error = [&](const Json& mpp) { return std::string(MessageOf(planned(mpp).status())); };
  for (const double wrong : {250.0, 50.1, 0.0009}) {
    EXPECT_NE(error(wrong).find(StrCat("the table's column 'mpp': ", wrong, ": not in 0.001..50")),
              std::string::npos)
        << error(wrong);
  }
  for (const Json& wrong : {Json{0.5, 0.5}, Json(0), Json("0.5"), Json::array()}) {
    EXPECT_NE(error(wrong).find("key 'table.rows[0].mpp': expected a number"), std::string::npos)
        << error(wrong);
  }
}

TEST_F(TablePlanTest, AStoreOfAnotherPartOfItsSlideThanTheRowChoosesIsRefused) {
  AddStore("p1.zarr", kOtherHash);
  const fs::path metadata = root_ / "stores/p1.zarr/zarr.json";
  const auto made_of = [&](const Json& part) {
    std::ifstream in(metadata);
    Json root = Json::parse(in);
    root["attributes"]["patchbay"]["codec_plan"] = part;
    std::ofstream(metadata) << root.dump();
  };
  const auto error = [&](const Row& row, const Json& choice) {
    context_.manifest = Manifest({row});
    context_.manifest["table"]["rows"][0]["choice"] = choice;
    return std::string(MessageOf(RunJobHere("stream.plan", context_).status()));
  };
  const Row found{"slides/archived.dcm", kOtherHash}, named{"stores/p1.zarr", ""};
  for (const Row& row : {found, named}) {
    made_of({{"codec", "lz4"}});
    EXPECT_EQ(error(row, Json::object()), "");
    EXPECT_NE(
        error(row, {{"focal_plane", 1.5}})
            .find("columns 'focal_plane' and 'optical_path' choose focal plane at 1.5 um, and "
                  "its store was made of the whole slide"),
        std::string::npos)
        << error(row, {{"focal_plane", 1.5}});
    made_of({{"codec", "lz4"}, {"focal_plane", 1.5}, {"optical_path", "2"}});
    EXPECT_EQ(error(row, Json::object()), "") << "a row without a choice takes what is there";
    EXPECT_EQ(error(row, {{"focal_plane", 1.5}, {"optical_path", "2"}}), "");
    EXPECT_NE(error(row, {{"optical_path", "2"}})
                  .find("made of focal plane at 1.5 um, optical path 2: ingest the row into "
                        "another folder"),
              std::string::npos);
  }
  const std::string other = error({"slides/Jane Doe.svs", ""}, {{"focal_plane", 0}});
  EXPECT_NE(other.find("it is no DICOM slide: leave the cells empty"), std::string::npos) << other;
}

TEST_F(TablePlanTest, NamesNoPathWhereItsErrorTravels) {
  const auto travels = [&](const Json& manifest) {
    protocol::TaskLease lease;
    lease.op = "stream.plan";
    lease.payload = DumpJson(context_.payload);
    lease.manifest = DumpJson(manifest);
    TaskContext context = context_;
    const auto planned = RunLeasedTask(lease, context, WorkMeter());
    if (planned.outcome.code != 0) return TextOf(planned.outcome);
    lease.op = planned.spawned[0].op;
    lease.payload = planned.spawned[0].payload;
    TaskContext joining = context_;
    joining.inputs = {planned.result};
    return TextOf(RunLeasedTask(lease, joining, WorkMeter()).outcome);
  };
  const std::string changed = travels(Manifest({{"slides/Jane Doe.svs", kOtherHash}}));
  EXPECT_NE(changed.find("image 0"), std::string::npos) << changed;
  Json nowhere = Manifest({{"slides/Jane Doe.svs", ""}});
  nowhere["table"]["stores"] = (root_ / "Doe stores").string();
  const std::string missing = travels(nowhere);
  EXPECT_NE(missing.find("key 'stores'"), std::string::npos) << missing;
  for (const std::string& text : {changed, missing}) {
    EXPECT_EQ(text.find("Doe"), std::string::npos) << text;
    EXPECT_EQ(text.find(root_.string()), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace patchbay::workers
