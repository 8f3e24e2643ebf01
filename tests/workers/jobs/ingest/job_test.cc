// The ingest job's tasks, run in this process.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "ops/all_ops.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/array.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/os/file.h"
#include "tests/workers/jobs/job_runner.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/shard_memory.h"
#include "workers/jobs/synth/synth.h"
#include "workers/jobs/task_table.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "patchbay-ingest-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { fs::remove_all(path_); }
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

 private:
  std::string path_;
};

const Json kSmall = {{"chunk", 128}, {"shard", 512}, {"codec", "lz4"}, {"codec_level", 1}};

Json ManifestFor(const std::vector<std::string>& sources, const std::string& out) {
  return {{"sources", sources}, {"out", out}, {"pseudonym_key", "00ff"}};
}

void MakeSlide(const std::string& path, std::int64_t side, std::uint64_t seed) {
  SynthSlideOptions options;
  options.width = side;
  options.height = side - 100;
  options.seed = seed;
  ASSERT_TRUE(SynthSlide(Folders::OfThisUser(), path, options).ok());
}

std::vector<std::string> Below(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t BytesBelow(const std::string& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

TEST(IngestJob, ShardsAskForTheMemoryOfAWholeOneWhateverTheirSlide) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 1300, 1);
  MakeSlide(folder.path("b.svs"), 700, 2);
  for (const std::uint64_t side : {512u, 1024u}) {
    JobRunner job(
        ManifestFor({folder.path("a.svs"), folder.path("b.svs")}, folder.path(StrCat("out", side))),
        1);
    Json settings = kSmall;
    settings["shard"] = side;
    job.Submit("ingest.plan", settings);
    job.Run();
    for (const Status& failure : job.Failures()) ADD_FAILURE() << Describe(failure);
    const std::vector<std::uint64_t> bytes = job.MemoryOf("ingest.shard");
    ASSERT_GT(bytes.size(), 2u);
    for (const std::uint64_t one : bytes) {
      EXPECT_EQ(one, side * side * 3 / 2 * 5 + (96u << 20)) << "as workers/README.md says";
    }
  }
}

TEST(IngestJob, ReadingBackIsAFifthOfTheWorkThatMakesAStore) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 1300, 1);
  JobRunner job(ManifestFor({folder.path("a.svs")}, folder.path("out")), 1);
  job.Submit("ingest.plan", kSmall);
  job.Run();
  const std::uint64_t making = job.WeightOf("ingest.shard") + job.WeightOf("ingest.join");
  EXPECT_GT(making, 1'000'000u);
  EXPECT_NEAR(static_cast<double>(job.WeightOf("ingest.check")), static_cast<double>(making) / 5,
              static_cast<double>(making) / 100);
}

TEST(IngestJob, AShardAsksForNoMoreThanTheNodeMayUse) {
  constexpr std::uint64_t kGib = std::uint64_t{1} << 30;
  zarr::ImageStoreSettings store;
  store.shard = Flat(32'768, 32'768);
  store.channels = 3;
  EXPECT_EQ(ShardTaskMemoryBytes(store, {4 * kGib, ""}), 4 * kGib / 100 * kMemoryUsePercent);
  EXPECT_EQ(ShardTaskMemoryBytes(store, {64 * kGib, ""}), 15 * kGib / 2 + (96u << 20));
}

TEST(IngestJob, StoreHoldsTheSlidesPixelsAndNothingElseIsLeft) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 1300, 1);
  JobRunner job(ManifestFor({folder.path("a.svs")}, folder.path("out")), 1);
  job.Submit("ingest.plan", kSmall);
  job.Run();
  for (const Status& failure : job.Failures()) ADD_FAILURE() << Describe(failure);
  const Json summary = job.ResultOf("ingest.summary");
  ASSERT_EQ(summary["stores"].size(), 1u);
  const std::string name = summary["stores"][0]["name"];
  EXPECT_EQ(Below(folder.path("out")), (std::vector<std::string>{name, "manifest.csv"}));

  const auto report = zarr::VerifyStore(Folders::OfThisUser(), folder.path("out/" + name));
  ASSERT_TRUE(report.ok()) << Describe(report.status());
  EXPECT_TRUE(report->Clean());
  EXPECT_EQ(report->recorded->bytes.Hex(), summary["stores"][0]["digest"].get<std::string>());

  const auto slide = *OpenImage(Folders::OfThisUser(), folder.path("a.svs"));
  const auto store = *OpenImage(Folders::OfThisUser(), folder.path("out/" + name));
  const LevelLayout level = slide->layout().levels[0];
  std::vector<std::byte> a(static_cast<std::size_t>(level.size.y * level.size.x * 3)), b(a.size());
  for (auto [image, bytes] : {std::pair{slide.get(), &a}, std::pair{store.get(), &b}}) {
    EncodedPatch patch;
    ASSERT_TRUE(image->Fetch(0, Box2D(0, 0, level.size.y, level.size.x), patch).ok());
    const TensorView out =
        ContiguousView<3>(bytes->data(), DType::kUint8, {level.size.y, level.size.x, 3});
    ASSERT_TRUE(image->Decode(patch, out, 255, *image->MakeScratch()).ok());
  }
  EXPECT_TRUE(a == b);
}

TEST(IngestJob, OrderRepeatsAndKillsDoNotChangeTheRoots) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 1500, 7);
  std::string reference;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const std::string out = folder.path(StrCat("out", seed));
    const Json manifest = ManifestFor({folder.path("a.svs")}, out);
    for (int killed_after = seed % 2 == 0 ? 3 : 0;; killed_after += 4) {
      JobRunner job(manifest, seed);
      job.repeat_every = static_cast<int>(seed);
      job.repeats_exactly = "ingest.shard";
      job.stop_after = killed_after > 12 ? 0 : killed_after;
      job.Submit("ingest.plan", kSmall);
      job.Run();
      ASSERT_TRUE(job.Failures().empty()) << Describe(job.Failures()[0]);
      const Json summary = job.ResultOf("ingest.summary");
      if (summary.is_null()) continue;
      const std::string digest = summary["stores"][0]["digest"];
      if (reference.empty()) reference = digest;
      EXPECT_EQ(digest, reference) << "seed " << seed;
      break;
    }
    EXPECT_EQ(Below(out).size(), 2u);
  }
}

TEST(IngestJob, SecondIngestOfTheSameSlideWritesNothing) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 700, 3);
  const Json manifest = ManifestFor({folder.path("a.svs")}, folder.path("out"));
  JobRunner first(manifest, 1), second(manifest, 2);
  first.Submit("ingest.plan", kSmall);
  first.Run();
  const Json once = first.ResultOf("ingest.summary");
  const auto written =
      fs::last_write_time(folder.path("out/" + once["stores"][0]["name"].get<std::string>()));
  second.Submit("ingest.plan", kSmall);
  second.Run();
  EXPECT_EQ(second.CountOf("ingest.shard"), 0u);
  const Json again = second.ResultOf("ingest.summary");
  EXPECT_EQ(again["stores"][0]["digest"], once["stores"][0]["digest"]);
  EXPECT_EQ(again["stores"][0]["stored_bytes"], once["stores"][0]["stored_bytes"]);
  EXPECT_EQ(once["stores"][0]["stored_bytes"],
            BytesBelow(folder.path("out/" + once["stores"][0]["name"].get<std::string>())))
      << "metadata too";
  EXPECT_TRUE(again["stores"][0]["already_there"]);
  EXPECT_EQ(fs::last_write_time(folder.path("out/" + once["stores"][0]["name"].get<std::string>())),
            written);
}

TEST(IngestJob, BadSlideFailsAloneAndIsNamedByItsNumber) {
  TemporaryFolder folder;
  MakeSlide(folder.path("good.svs"), 700, 3);
  std::ofstream(folder.path("bad.svs")) << "not a slide";
  MakeSlide(folder.path("cut.svs"), 900, 4);
  fs::resize_file(folder.path("cut.svs"), fs::file_size(folder.path("cut.svs")) / 2);
  JobRunner job(ManifestFor({folder.path()}, folder.path("out")), 1);
  job.Submit("ingest.plan", kSmall);
  job.Run();
  EXPECT_EQ(job.Failures().size(), 2u);
  const Json summary = job.ResultOf("ingest.summary");
  EXPECT_EQ(summary["stores"].size(), 1u);
  EXPECT_EQ(summary["missing"], (Json{0, 1}));
  for (const Status& failure : job.Failures()) {
    EXPECT_EQ(MessageOf(failure).find(folder.path()), std::string_view::npos) << Describe(failure);
    EXPECT_NE(MessageOf(failure).find("slide "), std::string_view::npos) << Describe(failure);
  }
  // Only the manifest that a retry needs stays beside the store and the table.
  EXPECT_EQ(Below(folder.path("out")).size(), 3u);
  ASSERT_EQ(Below(folder.path("out/.patchbay-ingest")).size(), 1u);
}

TEST(IngestJob, AFolderOfTheStoresNameThatIsNotOursIsNotTouched) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 600, 3);
  fs::create_directories(folder.path("out/a.ome.zarr"));
  std::ofstream(folder.path("out/a.ome.zarr/mine")) << "precious";
  Json settings = kSmall;
  settings["keep_names"] = true;
  JobRunner job(ManifestFor({folder.path("a.svs")}, folder.path("out")), 1);
  job.Submit("ingest.plan", settings);
  job.Run();
  ASSERT_EQ(job.Failures().size(), 1u);
  EXPECT_EQ(job.Failures()[0].code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*ReadFile(Folders::OfThisUser(), folder.path("out/a.ome.zarr/mine"), 100), "precious");
}

TEST(IngestJob, AlteredStagedShardIsMadeAgain) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 1300, 5);
  const Json manifest = ManifestFor({folder.path("a.svs")}, folder.path("out"));
  JobRunner killed(manifest, 1);
  killed.stop_after = 6;
  killed.Submit("ingest.plan", kSmall);
  killed.Run();
  int altered = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path("out"))) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || path.find("/c/0/") == std::string::npos) continue;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('\x7f');
    ++altered;
  }
  ASSERT_GT(altered, 0);
  JobRunner job(manifest, 2);
  job.Submit("ingest.plan", kSmall);
  job.Run();
  ASSERT_TRUE(job.Failures().empty()) << Describe(job.Failures()[0]);
  const std::string name = job.ResultOf("ingest.summary")["stores"][0]["name"];
  EXPECT_TRUE(zarr::VerifyStore(Folders::OfThisUser(), folder.path("out/" + name))->Clean());
}

/// Files of the staging folder whose path holds `part`.
std::vector<std::string> Staged(const std::string& out, const std::string& part) {
  std::vector<std::string> paths;
  if (!fs::exists(out)) return paths;
  for (const auto& entry : fs::recursive_directory_iterator(out)) {
    const std::string path = entry.path().string();
    if (entry.is_regular_file() && path.find(part) != std::string::npos) paths.push_back(path);
  }
  return paths;
}

/// Ingests a slide twice, once losing every piece as soon as it is there.
void ExpectLostPiecesChangeNothing(const std::string& slide) {
  TemporaryFolder folder;
  Json settings = kSmall;
  settings["chunk"] = 64;  // up to three coarser levels to a shard
  JobRunner whole(ManifestFor({slide}, folder.path("whole")), 1);
  whole.Submit("ingest.plan", settings);
  whole.Run();
  ASSERT_TRUE(whole.Failures().empty()) << Describe(whole.Failures()[0]);
  JobRunner job(ManifestFor({slide}, folder.path("out")), 2);
  job.Submit("ingest.plan", settings);
  job.stop_after = 1;
  std::size_t lost = 0;
  while (job.ResultOf("ingest.summary").is_null()) {
    job.Run();
    ASSERT_TRUE(job.Failures().empty()) << Describe(job.Failures()[0]);
    for (const std::string& path : Staged(folder.path("out"), "/pieces/")) {
      if (++lost % 2 == 0) {
        fs::remove(path);
      } else {
        fs::resize_file(path, fs::file_size(path) / 2);
      }
    }
  }
  EXPECT_GE(lost, 4u);
  EXPECT_EQ(job.ResultOf("ingest.summary")["stores"][0]["digest"],
            whole.ResultOf("ingest.summary")["stores"][0]["digest"]);
}

TEST(IngestJob, AStagedRecordWithATextOrADebtForACountIsMadeAgain) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 1300, 5);
  const Json manifest = ManifestFor({folder.path("a.svs")}, folder.path("out"));
  JobRunner killed(manifest, 1);
  killed.stop_after = 6;
  killed.Submit("ingest.plan", kSmall);
  killed.Run();
  const std::vector<std::string> records = Staged(folder.path("out"), "/records/0.");
  ASSERT_GE(records.size(), 2u);
  for (std::size_t i = 0; i < records.size(); ++i) {
    Json record = *ParseJson(*ReadFile(Folders::OfThisUser(), records[i], 1 << 20), "record");
    record["absent_pieces"] = i % 2 == 0 ? Json("many") : Json(-1);
    std::ofstream(records[i]) << DumpJson(record);
  }
  JobRunner job(manifest, 2);
  job.Submit("ingest.plan", kSmall);
  job.Run();
  ASSERT_TRUE(job.Failures().empty()) << Describe(job.Failures()[0]);
}

TEST(IngestJob, LostAndDamagedPiecesAreMadeAgainFromPixels) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 2300, 6);
  ExpectLostPiecesChangeNothing(folder.path("a.svs"));
}

TEST(IngestJob, LostPiecesOfThreeLevelsAreMadeAgainFromTheFinest) {
  const char* data = std::getenv("PATCHBAY_TEST_DATA");
  const std::string slide = StrCat(data == nullptr ? "" : data, "/wsi/CMU-1-Small-Region.svs");
  if (!fs::exists(slide)) GTEST_SKIP() << "no slide of one level: " << slide << " is missing";
  ExpectLostPiecesChangeNothing(slide);
}

using Meddle = std::function<void(const std::string& path)>;

/// Runs a slide's job and does something to its first zarr shard: as soon as it is committed, or
/// right before the first task of `before`.
struct MeddledIngest {
  explicit MeddledIngest(const Meddle& meddle, const std::string& before = "") {
    MakeSlide(folder.path("a.svs"), 1300, 5);
    job.emplace(ManifestFor({folder.path("a.svs")}, folder.path("out")), 3);
    bool is_done = false;
    job->before_each = [&, before](const std::string& op) {
      if (is_done || (!before.empty() && op != before)) return;
      const std::vector<std::string> shards = Staged(folder.path("out"), "/store/0/c/0/");
      if (shards.empty()) return;
      is_done = true;
      meddle(shards[0]);
    };
    job->Submit("ingest.plan", kSmall);
    job->Run();
    EXPECT_TRUE(is_done);
  }

  void ExpectDataLossIn(const std::string& op) const {
    ASSERT_EQ(job->FailedOps(), std::vector<std::string>{op});
    EXPECT_EQ(job->Failures()[0].code(), absl::StatusCode::kDataLoss);
    EXPECT_NE(MessageOf(job->Failures()[0]).find("differs from what its task committed"),
              std::string_view::npos);
    EXPECT_EQ(job->ResultOf("ingest.summary")["stores"].size(), 0u);
  }

  void ExpectPublished() const {
    ASSERT_TRUE(job->Failures().empty()) << Describe(job->Failures()[0]);
    const std::string name = job->ResultOf("ingest.summary")["stores"][0]["name"];
    EXPECT_TRUE(zarr::VerifyStore(Folders::OfThisUser(), folder.path("out/" + name))->Clean());
  }

  TemporaryFolder folder;
  std::optional<JobRunner> job;
};

void Alter(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file.put('\x7f');
}

void AlterAndRestoreTheTime(const std::string& path) {
  const auto time = fs::last_write_time(path);
  Alter(path);
  fs::last_write_time(path, time);
}

void ReplaceByTheSame(const std::string& path) {
  fs::copy_file(path, path + ".copy");
  fs::rename(path + ".copy", path);
}

TEST(IngestJob, AShardThatIsAlteredRightAfterItsCommitIsCaughtByItsCheck) {
  MeddledIngest(Alter).ExpectDataLossIn("ingest.check");
}

TEST(IngestJob, AShardThatIsAlteredRightBeforeItsCheckIsCaughtByIt) {
  MeddledIngest(Alter, "ingest.check").ExpectDataLossIn("ingest.check");
  MeddledIngest(AlterAndRestoreTheTime, "ingest.check").ExpectDataLossIn("ingest.check");
}

TEST(IngestJob, AShardThatIsAlteredAfterItsCheckIsReadAgainByFinalise) {
  MeddledIngest(Alter, "ingest.finalise").ExpectDataLossIn("ingest.finalise");
  MeddledIngest(AlterAndRestoreTheTime, "ingest.finalise").ExpectDataLossIn("ingest.finalise");
}

TEST(IngestJob, AShardThatWasReplacedByTheSameBytesIsReadAgainAndPublished) {
  MeddledIngest(ReplaceByTheSame).ExpectPublished();
  MeddledIngest(ReplaceByTheSame, "ingest.check").ExpectPublished();
  MeddledIngest(ReplaceByTheSame, "ingest.finalise").ExpectPublished();
}

TEST(IngestJob, ARecordThatFollowsItsAlteredFileIsNotWhatItsTaskReported) {
  const MeddledIngest ingest(
      [](const std::string& path) {
        Alter(path);
        const std::string staging = path.substr(0, path.find("/store/"));
        const std::string record = Staged(staging, "/records/0.0.0")[0];
        Json json = *ParseJson(*ReadFile(Folders::OfThisUser(), record, 1 << 20), "record");
        const std::string bytes =
            *ReadFile(Folders::OfThisUser(), staging + "/store/0/c/0/0/0", 1 << 24);
        for (auto& [key, value] : json.items()) {
          if (value.is_string()) value = Sha256Of(bytes).Hex();
        }
        std::ofstream(record) << DumpJson(json);
      },
      "ingest.check");
  EXPECT_EQ(ingest.job->FailedOps(), std::vector<std::string>{"ingest.check"});
}

TEST(IngestJob, ACheckWithoutTheResultOfEveryShardFails) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 1300, 5);
  for (const std::string op : {"ingest.check", "ingest.finalise"}) {
    SCOPED_TRACE(op);
    JobRunner job(ManifestFor({folder.path("a.svs")}, folder.path("out " + op)), 3);
    job.change_inputs = [&](const std::string& of, std::vector<std::string>& inputs) {
      if (of == op) inputs.pop_back();
    };
    job.Submit("ingest.plan", kSmall);
    job.Run();
    ASSERT_FALSE(job.FailedOps().empty());
    EXPECT_EQ(job.FailedOps()[0], op);
    EXPECT_EQ(job.Failures()[0].code(), absl::StatusCode::kInternal) << job.Failures()[0];
    EXPECT_EQ(job.ResultOf("ingest.summary")["stores"].size(), 0u);
  }
}

TEST(IngestJob, WhicheverShardIsAlteredAfterItsCommitACheckCatchesIt) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 1300, 5);
  Json settings = kSmall;
  settings["chunk"] = 64;
  settings["shard"] = 256;  // 35 shards, so that there are several checks
  for (const std::size_t nth : {1, 15, 30, 34}) {
    const std::string out = folder.path(StrCat("out", nth));
    JobRunner job(ManifestFor({folder.path("a.svs")}, out), static_cast<unsigned>(nth));
    std::set<std::string> seen;
    job.before_each = [&](const std::string&) {
      if (seen.size() >= nth) return;
      for (const std::string& path : Staged(out, "/c/0/")) {
        if (seen.insert(path).second && seen.size() == nth) Alter(path);
      }
    };
    job.Submit("ingest.plan", settings);
    job.Run();
    EXPECT_EQ(job.CountOf("ingest.check"), 3u);
    EXPECT_EQ(job.FailedOps(), std::vector<std::string>{"ingest.check"}) << nth;
  }
}

TEST(IngestJob, MppStoreStartsAtALevelThatIsAveragedBetweenTheSlidesOwn) {
  TemporaryFolder folder;
  MakeSlide(folder.path("a.svs"), 1500, 5);
  const double native =
      (*OpenImage(Folders::OfThisUser(), folder.path("a.svs")))->layout().spacing.x->Micrometres();
  const auto ingest = [&](const std::string& out, bool half) {
    Json settings = kSmall;
    if (half) settings["mpp"] = native * 2;
    JobRunner job(ManifestFor({folder.path("a.svs")}, folder.path(out)), 1);
    job.Submit("ingest.plan", settings);
    job.Run();
    EXPECT_TRUE(job.Failures().empty());
    return folder.path(out) + "/" +
           job.ResultOf("ingest.summary")["stores"][0]["name"].get<std::string>();
  };
  const auto read = [](const std::string& array, std::int64_t height, std::int64_t width) {
    std::vector<std::byte> pixels(static_cast<std::size_t>(height * width * 3));
    TensorView view = ContiguousView<3>(pixels.data(), DType::kUint8, {3, height, width});
    view.stride_bytes = {1, width * 3, 3};
    const auto opened = zarr::Array::Open(Folders::OfThisUser(), array);
    EXPECT_TRUE(opened.ok() && opened->ReadRegion({{}, {3, height, width}}, view).ok()) << array;
    return pixels;
  };
  std::vector<std::byte> whole = read(ingest("whole", false) + "/0", 1400, 1500);
  std::vector<std::byte> averaged(3 * 700 * 750);
  ASSERT_TRUE(
      zarr::DownsampleByTwo(ContiguousView<4>(whole.data(), DType::kUint8, {1, 1400, 1500, 3}),
                            ContiguousView<4>(averaged.data(), DType::kUint8, {1, 700, 750, 3}))
          .ok());
  EXPECT_TRUE(read(ingest("half", true) + "/0", 700, 750) == averaged);
}

TEST(IngestJob, UnwritableOutputIsRefusedByTheRights) {
  TemporaryFolder folder;
  TaskSignals signals;
  TaskContext context{Folders::OfThisUser(), ops::Table()};
  context.payload = kSmall;
  context.manifest = ManifestFor({folder.path()}, folder.path("out"));
  context.rights = PathRights{{"/"}, {folder.path("elsewhere")}};
  context.allowed = AllowedFoldersOf(context.rights, context.state_folder);
  context.signals = &signals;
  const auto output = kIngestJob.Run("ingest.plan", context);
  EXPECT_EQ(output.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(fs::exists(folder.path("out")));
}

TEST(IngestJob, ChoicesThatAreNoneOrOfNoSourceAreRefused) {
  TemporaryFolder folder;
  const auto plan = [&](const Json& choices) {
    TaskSignals signals;
    TaskContext context{Folders::OfThisUser(), ops::Table()};
    context.payload = kSmall;
    context.payload["choices"] = choices;
    context.manifest = ManifestFor({folder.path()}, folder.path("out"));
    context.rights = PathRights{{"/"}, {"/"}};
    context.allowed = AllowedFoldersOf(context.rights, context.state_folder);
    context.signals = &signals;
    return std::string(MessageOf(kIngestJob.Run("ingest.plan", context).status()));
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(plan(Json::parse(R"([{"focal_plane": 1, "sources": [1]}])")), "choices: no such source");
  has(plan(Json::parse(R"([{"focal_plane": 1e9, "sources": [0]}])")), "focal_plane");
  has(plan(Json::parse(R"([{"plane": 1, "sources": [0]}])")), "plane");
  has(plan(Json::parse(R"({"focal_plane": 1})")), "choices");
}

}  // namespace
}  // namespace patchbay::workers
