// The reports of scan and inspect: images that are not square, series that cannot be read.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "tests/workers/sources/crafted_tiff.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/synth/synth.h"
#include "workers/process/local_run.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

class Looks : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(fs::temp_directory_path()) / ("looks_" + Hex64(RandomU64()));
    fs::create_directories(root_);
    context_.rights = PathRights::All();
    context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
    context_.signals = &signals_;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string At(const std::string& name) const { return (root_ / name).string(); }
  Json Look(const std::string& op, const std::string& name) {
    context_.payload = {{"hash", false}};
    context_.manifest = {{"images", {At(name)}}};
    const auto result = RunJobHere(op, context_);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *ParseJson(*result, "result") : Json::object();
  }
  /// The row that inspect has of a series with a fault.
  Json Series(const std::string& fault) {
    SynthCtOptions options;
    options.size = {6, 20, 28};
    options.fault = fault;
    EXPECT_TRUE(SynthCt(Folders::OfThisUser(), At(fault), options).ok());
    return Look("inspect", fault)["volumes"][0];
  }

  fs::path root_;
  TaskSignals signals_;
  TaskContext context_{Folders::OfThisUser(), ops::Table()};
};

TEST_F(Looks, ASlideHasItsSidesAndTheBytesOfItsStore) {
  CraftedImage image;
  image.width = 40;
  image.height = 24;
  FillFlat(image);
  ASSERT_TRUE(WriteTiff(At("a.tif"), {image}).ok());
  const Json row = Look("scan", "a.tif")["images"][0];
  EXPECT_EQ(row["height"], 24);
  EXPECT_EQ(row["width"], 40);
  EXPECT_EQ(row["estimated_bytes"], 24 * 40 * 3 * 2 / 3) << "two thirds of its RGB bytes";
  const Json seen = Look("inspect", "a.tif");
  EXPECT_EQ(seen["levels"][0]["shape"], Json::array({3, 24, 40}));
}

TEST_F(Looks, ASeriesThatIngestRefusesAtFirstIsDescribedAllTheSame) {
  for (const char* fault : {"none", "variable-steps", "tilt"}) {
    const Json row = Series(fault);
    EXPECT_EQ(row["shape"], Json::array({6, 20, 28})) << fault;
    EXPECT_FALSE(row.contains("error")) << row;
  }
}

TEST_F(Looks, ARefusedSeriesIsNotADamagedOne) {
  const Json refused = Series("mixed-orientation");
  EXPECT_EQ(refused["damaged"], false) << refused;
  const Json damaged = Series("truncated");
  EXPECT_EQ(damaged["damaged"], true) << damaged;
}

}  // namespace
}  // namespace patchbay::workers
