// The spectra job's tasks, run in this process.
#include <filesystem>
#include <map>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/workers/jobs/spectra/fixtures.h"
#include "workers/jobs/spectra/spectra.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

/// Every published file by name, and nothing else in the folder.
std::map<std::string, std::string> FilesIn(const std::string& out) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(out)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path().lexically_relative(out).string()] =
        *ReadFile(Folders::OfThisUser(), entry.path().string(), std::size_t{1} << 28);
  }
  return files;
}

std::vector<std::uint64_t> CountsOf(const Json& part) { return part["histogram"]["counts"]; }

/// The document's slide against one Add over the whole image: the same sums give the same numbers.
void ExpectFiguresOf(const Json& part, const std::vector<ops::SpectralSums>& sums,
                     const plan::SpectralOptions& options) {
  ops::SpectralSums all = sums[0];
  for (std::size_t i = 1; i < sums.size(); ++i) ASSERT_TRUE(ops::Merge(sums[i], all).ok());
  EXPECT_EQ(part["frames"], sums[0].frames);
  EXPECT_EQ(part["mean_db"].get<double>(), ops::MeanDb(all));
  EXPECT_EQ(part["std_db"].get<double>(), ops::StdDb(all));
  EXPECT_EQ(part["focus_db"].get<double>(), ops::FocusDb(all, options));
  EXPECT_EQ(part["percentiles"]["p95"].get<double>(), ops::PercentileDb(all, 0.95));
  EXPECT_EQ(CountsOf(part), std::vector<std::uint64_t>(all.histogram.begin(), all.histogram.end()));
  const std::vector<double> rings = ops::RingMeans(all);
  EXPECT_EQ(part["radial"]["power"].get<std::vector<double>>(),
            std::vector<double>(rings.begin() + 1, rings.end()));
}

TEST(SpectraJob, AnyStripGivesTheSumsOfTheWholeImage) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(700, 1500)}).ok());
  const Json settings = {{"frame", 64}, {"hop", 8}, {"prefilter", "gauss7"}, {"channel", "rgb"}};
  const plan::SpectralOptions options = *ParseSpectraSettings(settings);
  const std::vector<ops::SpectralSums> whole = WholeImageSums(folder.File("a.tif"), options);
  std::size_t most = 0;
  for (const int strip : {32, 64, 1024}) {
    Json with_strip = settings;
    with_strip["strip"] = strip;
    const std::string out = folder.File(StrCat("out", strip));
    JobRunner job = RunSpectraJob(SpectraManifestFor({folder.File("a.tif")}, out), with_strip);
    for (const Status& failure : job.Failures()) ADD_FAILURE() << Describe(failure);
    ASSERT_EQ(DocumentIn(out)["slides"].size(), 1u);
    ExpectFiguresOf(DocumentIn(out)["slides"][0], whole, options);
    most = std::max(most, job.CountOf("spectra.strip"));
  }
  EXPECT_GT(most, 2u);
}

TEST(SpectraJob, RealSlideGivesTheSumsOfTheWholeImage) {
  const std::string slide = TestDataFolder() + "/wsi/CMU-1-Small-Region.svs";
  if (!fs::exists(slide)) GTEST_SKIP() << "no test data";
  TemporaryFolder folder;
  RunSpectraJob(SpectraManifestFor({slide}, folder.File("out")), {{"strip", 64}});
  const Json part = DocumentIn(folder.File("out"))["slides"][0];
  ExpectFiguresOf(part, WholeImageSums(slide, {}), {});
  EXPECT_EQ(part["remainder"],
            (Json{{"right", 2220 - 15 * 128 - 256}, {"bottom", 2967 - 21 * 128 - 256}}));
  EXPECT_EQ(part["mpp"], 0.499);
  EXPECT_EQ(part["radial"]["unit"], "cycles/um");
  EXPECT_EQ(part["radial"]["frequency_step"].get<double>(), 1.0 / 256 / 0.499);
}

TEST(SpectraJob, AnImageWiderThanAPanelIsMeasuredInPanels) {
  TemporaryFolder folder;
  CraftedImage image;
  image.width = 200'000;
  image.height = 300;
  image.tile = 256;
  image.samples = 1;
  image.photometric = 1;
  image.pieces.resize(PieceCount(image));
  const CraftedImage pattern = PatternImage(256, 256, 256, 1);
  for (const std::size_t column : {0, 388, 389, 390, 391, 392, 512, 780}) {
    image.pieces[column] = pattern.pieces[0];
  }
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {image}).ok());
  JobRunner job = RunSpectraJob(SpectraManifestFor({folder.File("a.tif")}, folder.File("out")),
                                {{"prefilter", "gauss7"}});
  ASSERT_TRUE(job.Failures().empty()) << Describe(job.Failures()[0]);
  EXPECT_GE(job.CountOf("spectra.strip"), 2u);
  const plan::SpectralOptions options = *ParseSpectraSettings({{"prefilter", "gauss7"}});
  ExpectFiguresOf(DocumentIn(folder.File("out"))["slides"][0],
                  WholeImageSums(folder.File("a.tif"), options), options);
}

TEST(SpectraJob, OrderRepeatsAndKillsDoNotChangeAByte) {
  TemporaryFolder folder;
  for (const int i : {1, 2, 3}) {
    const auto seed = static_cast<std::uint32_t>(i);
    ASSERT_TRUE(WriteTiff(folder.File(StrCat("in", i, ".tif")),
                          {PatternImage(600 + 40 * seed, 1100, 128, 3, seed)})
                    .ok());
  }
  const std::vector<std::string> sources = {folder.path()};
  std::map<std::string, std::string> reference;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const std::string out = folder.File(StrCat(".out", seed));
    for (int killed_after = seed % 2 == 0 ? 3 : 0;; killed_after += 5) {
      JobRunner job(SpectraManifestFor(sources, out), seed);
      job.repeat_every = static_cast<int>(seed);
      job.repeats_exactly = "spectra.strip";
      job.stop_after = killed_after > 14 ? 0 : killed_after;
      job.Submit("spectra.plan", {{"frame", 64},
                                  {"hop", 10},
                                  {"strip", 16 << seed},
                                  {"coefficients", true},
                                  {"channel", "rgb"}});
      job.Run();
      ASSERT_TRUE(job.Failures().empty()) << Describe(job.Failures()[0]);
      if (job.ResultOf("spectra.summary").is_null()) continue;
      break;
    }
    const auto files = FilesIn(out);
    if (reference.empty()) reference = files;
    EXPECT_EQ(files.size(), reference.size());
    for (const auto& [name, bytes] : reference) {
      ASSERT_TRUE(files.contains(name)) << name;
      EXPECT_TRUE(files.at(name) == bytes) << name << " seed " << seed;
    }
  }
  EXPECT_EQ(reference.size(), 6u + 9u);
  EXPECT_EQ(reference.count("coefficients/" +
                            DocumentIn(folder.File(".out1"))["slides"][0]["id"].get<std::string>() +
                            ".green.npy"),
            1u);
}

TEST(SpectraJob, FinishedSlidesOfAKilledRunAreNotMeasuredAgain) {
  TemporaryFolder folder;
  for (const int i : {1, 2}) {
    ASSERT_TRUE(WriteTiff(folder.File(StrCat(i, ".tif")),
                          {PatternImage(400, 400, 128, 3, static_cast<std::uint32_t>(i))})
                    .ok());
  }
  const Json manifest =
      SpectraManifestFor({folder.File("1.tif"), folder.File("2.tif")}, folder.File("out"));
  JobRunner killed(manifest, 5);
  killed.stop_after = 8;  // plan, two opens, two strips, two names, one merge
  killed.Submit("spectra.plan", Json::object());
  killed.Run();
  ASSERT_FALSE(killed.ResultOf("spectra.slide").is_null());
  JobRunner next = RunSpectraJob(manifest, Json::object());
  EXPECT_EQ(next.CountOf("spectra.slide"), 1u);
  int adopted = 0;
  const Json summary = next.ResultOf("spectra.summary");
  for (const Json& slide : summary["slides"]) {
    EXPECT_EQ(slide["pixel_bytes"], slide["already_there"].get<bool>() ? 0 : 400 * 400 * 3);
    adopted += slide["already_there"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(adopted, 1);
  EXPECT_FALSE(fs::exists(folder.File("out/.patchbay-spectra")));
}

TEST(SpectraJob, AFinishedSlideThatHasChangedSinceIsMeasuredAgain) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(400, 400)}).ok());
  const Json manifest = SpectraManifestFor({folder.File("a.tif")}, folder.File("out"));
  JobRunner killed(manifest, 5);
  killed.stop_after = 5;  // all but summary and clean
  killed.Submit("spectra.plan", Json::object());
  killed.Run();
  ASSERT_FALSE(killed.ResultOf("spectra.slide").is_null());
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(400, 400, 128, 3, 9)}).ok());
  fs::last_write_time(folder.File("a.tif"),
                      fs::file_time_type::clock::now() + std::chrono::seconds(10));
  RunSpectraJob(manifest, Json::object());
  ExpectFiguresOf(DocumentIn(folder.File("out"))["slides"][0],
                  WholeImageSums(folder.File("a.tif"), {}), {});
}

TEST(SpectraJob, TheSameCommandAgainGivesTheSameFilesAndOtherSettingsAreRefused) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(400, 400)}).ok());
  const Json manifest = SpectraManifestFor({folder.File("a.tif")}, folder.File("out"));
  RunSpectraJob(manifest, Json::object());
  const auto first = FilesIn(folder.File("out"));
  ASSERT_EQ(first.count("spectra.json"), 1u);
  JobRunner again = RunSpectraJob(manifest, {{"strip", 64}});
  EXPECT_TRUE(again.Failures().empty());
  EXPECT_TRUE(FilesIn(folder.File("out")) == first);
  JobRunner other = RunSpectraJob(manifest, {{"window", "hann"}});
  ASSERT_EQ(other.Failures().size(), 1u);
  EXPECT_EQ(other.Failures()[0].code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(MessageOf(other.Failures()[0]).find("OUT/spectra.json"), std::string_view::npos);
  EXPECT_TRUE(FilesIn(folder.File("out")) == first);
}

TEST(SpectraJob, AFileOfOurNameThatIsNotOursIsNotTouched) {
  for (const char* name : {"spectra.json", "manifest.csv", "cohort.png", "coefficients"}) {
    TemporaryFolder folder;
    ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(400, 400)}).ok());
    fs::create_directories(folder.File("out"));
    ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), folder.File(StrCat("out/", name)),
                                 AsBytes("precious"))
                    .ok());
    JobRunner job = RunSpectraJob(SpectraManifestFor({folder.File("a.tif")}, folder.File("out")),
                                  Json::object());
    ASSERT_EQ(job.Failures().size(), 1u) << name;
    EXPECT_EQ(job.Failures()[0].code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(FilesIn(folder.File("out")),
              (std::map<std::string, std::string>{{name, "precious"}}));
  }
}

TEST(SpectraJob, AnUnfinishedPublicationIsFinishedByTheSameCommandOnly) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(400, 400)}).ok());
  const Json manifest = SpectraManifestFor({folder.File("a.tif")}, folder.File("out"));
  JobRunner killed(manifest, 1);
  killed.stop_after = 6;  // all but the folder's removal
  killed.Submit("spectra.plan", Json::object());
  killed.Run();
  fs::remove(folder.File("out/spectra.json"));  // as if it had died just before
  JobRunner other = RunSpectraJob(manifest, {{"window", "hann"}});
  ASSERT_EQ(other.Failures().size(), 1u);
  EXPECT_EQ(other.Failures()[0].code(), absl::StatusCode::kAlreadyExists);
  JobRunner next = RunSpectraJob(manifest, Json::object());
  EXPECT_TRUE(next.Failures().empty());
  EXPECT_EQ(DocumentIn(folder.File("out"))["slides"].size(), 1u);
}

TEST(SpectraJob, OnlyTheManifestNamesFilesAndOnlyItsOwnerReadsIt) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("Müller, \"Anna\".tif"), {PatternImage(400, 400)}).ok());
  ASSERT_TRUE(
      WriteFileDurably(Folders::OfThisUser(), folder.File("not.tif"), AsBytes("no slide")).ok());
  RunSpectraJob(SpectraManifestFor({folder.path()}, folder.File(".out")), Json::object());
  for (const auto& [name, bytes] : FilesIn(folder.File(".out"))) {
    if (name == "manifest.csv" || name.ends_with("/manifest.json")) continue;
    EXPECT_EQ(bytes.find("Anna"), std::string::npos) << name;
    EXPECT_EQ(bytes.find(folder.path()), std::string::npos) << name;
  }
  struct stat st {};
  ASSERT_EQ(stat(folder.File(".out/manifest.csv").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  const auto rows =
      ParseCsv(*ReadFile(Folders::OfThisUser(), folder.File(".out/manifest.csv"), 1 << 20));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"index", "id", "path", "digest"}));
  EXPECT_EQ(rows[1][2], folder.File("Müller, \"Anna\".tif"));
  EXPECT_EQ(rows[1][3], Sha256Of(*ReadFile(Folders::OfThisUser(), rows[1][2], 1 << 28)).Hex());
  const Json document = DocumentIn(folder.File(".out"));
  EXPECT_EQ(document["slides"][0]["id"], rows[1][1]);
  EXPECT_EQ(document["slides"][0]["id"],
            HmacSha256(AsBytes("00ff"), rows[1][3]).Hex().substr(0, 16));
  EXPECT_EQ(document["failed"][0]["id"], rows[2][1]);
}

TEST(SpectraJob, CoefficientsAreTheMeansOfTheSums) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(300, 500)}).ok());
  RunSpectraJob(SpectraManifestFor({folder.File("a.tif")}, folder.File("out")),
                {{"coefficients", true}, {"frame", 64}, {"hop", 32}, {"strip", 32}});
  plan::SpectralOptions options;
  options.frame = 64;
  options.hop = 32;
  options.coefficients = true;
  const ops::SpectralSums sums = WholeImageSums(folder.File("a.tif"), options)[0];
  const std::string id = DocumentIn(folder.File("out"))["slides"][0]["id"];
  const std::string npy =
      *ReadFile(Folders::OfThisUser(), folder.File("out/coefficients/" + id + ".npy"), 1 << 20);
  const std::size_t header = npy.size() - 64 * 33 * 4;
  EXPECT_EQ(header % 64, 0u);
  EXPECT_NE(npy.find("'shape': (64, 33), "), std::string::npos);
  for (std::size_t i = 0; i < 64 * 33; ++i) {
    float mean = 0;
    std::memcpy(&mean, npy.data() + header + 4 * i, 4);
    ASSERT_FLOAT_EQ(mean, static_cast<float>(static_cast<double>(sums.coefficient_q[i]) / 1024 /
                                             static_cast<double>(sums.frames)));
  }
}

TEST(SpectraJob, TheSummaryIsWhatTheCommandReads) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(400, 300)}).ok());
  fs::copy(folder.File("a.tif"), folder.File("b.tif"));
  JobRunner job = RunSpectraJob(
      SpectraManifestFor({folder.File("a.tif"), folder.File("b.tif")}, folder.File("out")),
      Json::object());
  const Json plan = job.ResultOf("spectra.plan"), summary = job.ResultOf("spectra.summary");
  EXPECT_EQ(plan["sources"], 2);
  EXPECT_EQ(plan["summary_task"], 3);
  ASSERT_EQ(summary["slides"].size(), 1u);
  const Json document = DocumentIn(folder.File("out"));
  EXPECT_EQ(summary["definition"], document["definition"]);
  EXPECT_EQ(summary["slides"][0]["source_index"], 0);
  EXPECT_EQ(summary["slides"][0]["mean_db"], document["slides"][0]["mean_db"]);
  EXPECT_EQ(summary["cohort"]["frames"], document["cohort"]["frames"]);
  EXPECT_EQ(summary["duplicates"][0]["index"], 1);
  EXPECT_EQ(document["duplicates"], (Json{{{"index", 1}, {"id", document["slides"][0]["id"]}}}));
  EXPECT_EQ(summary["plots"], (Json{"histogram.png", "radial.png", "cohort.png"}));
}

}  // namespace
}  // namespace patchbay::workers
