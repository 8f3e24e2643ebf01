// Leases as a scheduler sends them, with the folders of a key, against links in those folders: the
// paths are sent as they are, so nothing but the worker stands in the way.
#include <filesystem>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"
#include "workers/process/task_runner.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

/// The key may access allowed/, which has a store and a slide, but not secret/, which has the same.
class ConfinedTasks : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"allowed", "secret"}) {
      zarr::ImageStoreSpec spec;
      spec.settings.codec = zarr::StoreCodec::kBloscLz4;
      spec.settings.chunk = Flat(32, 32);
      spec.settings.shard = Flat(64, 64);
      spec.levels = {Flat(100, 90)};
      const int seed = name[0];
      zarr::WriteStore(At(StrCat(name, "/s.ome.zarr")), spec,
                       {zarr::MakeImage(DType::kUint8, 100, 90, 3, seed)});
      zarr::WriteText(At(StrCat(name, "/a.svs")), name);
    }
  }

  std::string At(const std::string& name) const { return fs::canonical(folder_.path()) / name; }
  void Replace(const std::string& name, const std::string& target) const {
    fs::remove_all(At(name));
    fs::create_symlink(target, At(name));
  }

  /// Runs one task that may touch only the folder "allowed". Returns the worker's report of it.
  protocol::TasksFinished::Item Run(const std::string& op, const Json& manifest,
                                    const Json& payload = Json::object()) const {
    protocol::TaskLease lease;
    lease.op = op;
    lease.lease = {1, 1};
    lease.manifest = DumpJson(manifest);
    lease.payload = DumpJson(payload);
    TaskSignals signals;
    TaskContext context{Folders::OfThisUser(), ops::Table()};
    context.signals = &signals;
    context.rights = PathRights{{At("allowed")}, {At("allowed")}};
    context.allowed = AllowedFoldersOf(context.rights, context.state_folder);
    return RunLeasedTask(lease, context, WorkMeter());
  }
  static bool IsDenied(const protocol::TasksFinished::Item& item) {
    return absl::IsPermissionDenied(StatusOf(item.outcome));
  }
  std::size_t SecretEntries() const {
    const fs::recursive_directory_iterator all(At("secret"));
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  const zarr::TempFolder folder_;
};

TEST_F(ConfinedTasks, APathOutsideIsRefusedHoweverItIsWritten) {
  EXPECT_EQ(Run("inspect", {{"images", {At("allowed/s.ome.zarr")}}}).outcome.code, 0);
  Replace("allowed/link", "../secret");
  for (const char* name : {"secret/s.ome.zarr", "allowed/../secret/s.ome.zarr",
                           "allowed/link/s.ome.zarr", "allowed/./link/../secret/s.ome.zarr"}) {
    EXPECT_TRUE(IsDenied(Run("inspect", {{"images", {At("allowed") + "/../" + name}}}))) << name;
    EXPECT_TRUE(IsDenied(Run("verify", {{"images", {At("allowed") + "/../" + name}}}))) << name;
  }
}

TEST_F(ConfinedTasks, ALinkInsideAStoreGivesNothingOfAnotherFolder) {
  const Json manifest = {{"images", {At("allowed/s.ome.zarr")}}};
  EXPECT_TRUE(Json::parse(Run("verify", manifest).result)["clean"]);
  for (const char* target : {"../../../secret/s.ome.zarr/0/c", ""}) {
    const std::string to = *target == 0 ? At("secret/s.ome.zarr/0/c") : target;
    Replace("allowed/s.ome.zarr/0/c", to);
    const auto item = Run("verify", manifest, {{"threads", 3}});
    ASSERT_EQ(item.outcome.code, 0) << TextOf(item.outcome);
    EXPECT_FALSE(Json::parse(item.result)["clean"]);
    EXPECT_NE(item.result.find("leads out of"), std::string::npos) << item.result;
  }
  Replace("allowed/s.ome.zarr/zarr.json", At("secret/s.ome.zarr/zarr.json"));
  EXPECT_TRUE(IsDenied(Run("inspect", manifest)));
}

TEST_F(ConfinedTasks, AWorkFolderThatIsALinkIsNotWrittenInto) {
  const std::size_t before = SecretEntries();
  for (const char* job : {"ingest", "spectra"}) {
    fs::create_directories(At("allowed/out"));
    Replace(StrCat("allowed/out/.patchbay-", job), At("secret"));
    const Json manifest = {{"sources", {At("allowed/a.svs")}},
                           {"images", {At("allowed/a.svs")}},
                           {"out", At("allowed/out")},
                           {"pseudonym_key", "00ff"}};
    const auto item = Run(StrCat(job, ".plan"), manifest);
    EXPECT_TRUE(IsDenied(item)) << TextOf(item.outcome);
  }
  EXPECT_EQ(SecretEntries(), before);
}

TEST_F(ConfinedTasks, AFolderOfSlidesIsNotSearchedThroughALink) {
  Replace("allowed/more", "../secret");
  const auto item =
      Run("ingest.plan",
          {{"sources", {At("allowed")}}, {"out", At("allowed/out")}, {"pseudonym_key", "00ff"}});
  ASSERT_EQ(item.outcome.code, 0) << TextOf(item.outcome);
  std::string listed;
  for (const auto& entry : fs::recursive_directory_iterator(At("allowed/out"))) {
    if (entry.path().filename() == "manifest.json") listed = zarr::ReadText(entry.path());
  }
  EXPECT_NE(listed.find("allowed/a.svs"), std::string::npos) << listed;
  EXPECT_EQ(listed.find("secret/a.svs"), std::string::npos) << listed;
  EXPECT_EQ(listed.find("more/a.svs"), std::string::npos) << listed;
}

}  // namespace
}  // namespace patchbay::workers
