// The same pixels twice: in one job, in two at once, and when their store is there.
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/format/csv/csv.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/os/file.h"
#include "tests/workers/jobs/ingest/small_ingest.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

class Copies : public SmallIngest {
 protected:
  void ExpectWhole(const std::string& store) const {
    const auto report = zarr::VerifyStore(Folders::OfThisUser(), out_ + "/" + store);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->Clean());
  }
  static void ExpectNoFailure(const JobRunner& job) {
    for (const Status& failure : job.Failures()) ADD_FAILURE() << failure;
  }
};

TEST_F(Copies, OfASlideBecomeOneStoreInWhateverOrderTheirTasksRun) {
  MakeSlide("a.svs", 1300, 1);
  fs::copy_file(Path("a.svs"), Path("b.svs"));
  fs::create_hard_link(Path("a.svs"), Path("c.svs"));
  for (unsigned seed = 1; seed <= 5; ++seed) {
    fs::remove_all(out_);
    JobRunner job(Manifest({"a.svs", "b.svs", "c.svs"}), seed);
    job.Submit("ingest.plan", settings_);
    job.Run();
    ExpectNoFailure(job);
    const Json summary = job.ResultOf("ingest.summary");
    ASSERT_EQ(summary["stores"].size(), 3u) << "seed " << seed;
    const std::string name = summary["stores"][0]["name"];
    int made = 0;
    for (const Json& store : summary["stores"]) {
      EXPECT_EQ(store["name"], name);
      EXPECT_EQ(store["digest"], summary["stores"][0]["digest"]);
      made += store["already_there"] ? 0 : 1;
    }
    EXPECT_EQ(made, 1) << "seed " << seed;
    EXPECT_EQ(Below(out_), (std::vector<std::string>{name, "manifest.csv"})) << "seed " << seed;
    ExpectWhole(name);
    const auto rows = ParseCsv(*ReadFile(Folders::OfThisUser(), out_ + "/manifest.csv", 1 << 20));
    EXPECT_EQ(rows.size(), 4u) << "a row for every path";
  }
}

TEST_F(Copies, ThatKeepTheirNamesBecomeAStoreEach) {
  MakeSlide("a.svs", 1300, 1);
  fs::copy_file(Path("a.svs"), Path("b.svs"));
  settings_["keep_names"] = true;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    fs::remove_all(out_);
    JobRunner job(Manifest({"a.svs", "b.svs"}), seed);
    job.Submit("ingest.plan", settings_);
    job.Run();
    ExpectNoFailure(job);
    EXPECT_EQ(Below(out_), (std::vector<std::string>{"a.ome.zarr", "b.ome.zarr", "manifest.csv"}));
    ExpectWhole("a.ome.zarr");
    ExpectWhole("b.ome.zarr");
  }
}

TEST_F(Copies, OfAJobEndWellWhereverOneOvertakesTheOther) {
  MakeSlide("a.svs", 1300, 1);
  MakeSlide("b.svs", 900, 2);
  for (unsigned seed = 1; seed <= 6; ++seed) {
    fs::remove_all(out_);
    Json manifest = Manifest({"a.svs", "b.svs"});
    manifest["run"] = 1;
    JobRunner first(manifest, seed);
    manifest["run"] = 2;
    JobRunner second(manifest, seed + 100);
    for (JobRunner* job : {&first, &second}) {
      job->stop_after = 1;
      job->Submit("ingest.plan", settings_);
      job->Run();
    }
    std::mt19937 random(seed);
    while (first.CountOf("ingest.clean") + second.CountOf("ingest.clean") < 2 &&
           first.Failures().empty() && second.Failures().empty()) {
      // Now and then one of them does much at a time.
      JobRunner& job = random() % 2 == 0 ? first : second;
      job.stop_after = random() % 4 == 0 ? 20 : 1;
      job.Run();
    }
    for (JobRunner* job : {&first, &second}) {
      job->stop_after = 0;
      job->Run();
      ExpectNoFailure(*job);
      EXPECT_EQ(job->ResultOf("ingest.summary")["stores"].size(), 2u) << "seed " << seed;
    }
    ASSERT_EQ(Below(out_).size(), 3u) << "seed " << seed;
    for (const std::string& name : Below(out_)) {
      if (name != "manifest.csv") ExpectWhole(name);
    }
  }
}

TEST_F(Copies, OfJobsWithOtherSettingsNeverShareAShard) {
  MakeSlide("a.svs", 1300, 1);
  const std::vector<Json> settings = {settings_, [this] {
                                        Json other = settings_;
                                        other["codec"] = "zstd";
                                        return other;
                                      }()};
  std::vector<std::string> alone;
  for (const Json& one : settings) {
    fs::remove_all(out_);
    JobRunner job(Manifest({"a.svs"}), 1);
    job.Submit("ingest.plan", one);
    job.Run();
    alone.push_back(job.ResultOf("ingest.summary")["stores"][0]["digest"]);
  }
  ASSERT_NE(alone[0], alone[1]);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    fs::remove_all(out_);
    std::vector<JobRunner> jobs;
    for (unsigned i = 0; i < 2; ++i) {
      Json manifest = Manifest({"a.svs"});
      manifest["run"] = i + 1;
      jobs.emplace_back(manifest, seed + 100 * i);
      jobs[i].Submit("ingest.plan", settings[i]);
      jobs[i].stop_after = 1;
    }
    std::mt19937 random(seed);
    for (int turns = 0; turns < 200; ++turns) jobs[random() % 2].Run();
    int made = 0;
    for (unsigned i = 0; i < 2; ++i) {
      const Json stores = jobs[i].ResultOf("ingest.summary")["stores"];
      for (const Json& store : stores) {
        EXPECT_EQ(store["digest"], alone[i]);
        ExpectWhole(store["name"]);
      }
      made += static_cast<int>(stores.size());
      // The store's name is the other's by then.
      EXPECT_EQ(jobs[i].Failures().size() + stores.size(), 1u);
    }
    EXPECT_EQ(made, 1);
  }
}

class StoreThatIsThere : public SmallIngest {
 protected:
  /// Ingests a slide, lets `damage` do something to its store, ingests it again.
  Status AgainAfter(const std::function<void(const std::string& store)>& damage) {
    fs::remove_all(out_);
    Json summary;
    for (const bool again : {false, true}) {
      JobRunner job(Manifest({"a.svs"}), 1);
      job.Submit("ingest.plan", settings_);
      job.Run();
      if (again) return job.Failures().empty() ? absl::OkStatus() : job.Failures()[0];
      damage(out_ + "/" + job.ResultOf("ingest.summary")["stores"][0]["name"].get<std::string>());
    }
    return absl::OkStatus();
  }
};

TEST_F(StoreThatIsThere, IsNotTakenForWholeWhenAFileOfItIsGoneOrIsNone) {
  MakeSlide("a.svs", 1300, 5);
  EXPECT_TRUE(AgainAfter([](const std::string&) {}).ok());
  const auto shard = [](const std::string& store) { return store + "/0/c/0/1/1"; };
  for (const auto& [damage, named] :
       std::vector<std::pair<std::function<void(const std::string&)>, std::string>>{
           {[&](const std::string& store) { fs::remove(shard(store)); }, "0/c/0/1/1 is missing"},
           {[&](const std::string& store) { fs::remove_all(store + "/1/c"); }, "1/c/0/0/0"},
           {[&](const std::string& store) { fs::remove(store + "/1/zarr.json"); }, "1"},
           {[&](const std::string& store) {
              fs::remove(shard(store));
              fs::create_directory(shard(store));
            },
            "0/c/0/1/1 is a folder"},
           {[&](const std::string& store) {
              fs::rename(shard(store), store + "/aside");
              fs::create_symlink(store + "/aside", shard(store));
            },
            "0/c/0/1/1 is a symbolic link"}}) {
    const Status status = AgainAfter(damage);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(MessageOf(status).find(named), std::string_view::npos) << status;
    EXPECT_NE(MessageOf(status).find("patchbay verify"), std::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace patchbay::workers
