// A bad slide is named and left out; the job goes on with the others.
#include <filesystem>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "tests/workers/jobs/spectra/fixtures.h"
#include "workers/jobs/spectra/spectra.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

/// A folder with one good slide, and the job over everything in it.
class Cohort {
 public:
  Cohort() { EXPECT_TRUE(WriteTiff(File("0-good.tif"), {PatternImage(500, 400)}).ok()); }

  std::string File(const std::string& name) const { return folder_.File(name); }
  std::string out() const { return folder_.File(".out"); }

  /// The only failure of the job, which must be that of slide 1.
  Status OnlyFailure(const Json& settings = Json::object()) {
    JobRunner job = RunSpectraJob(SpectraManifestFor({folder_.path()}, out()), settings);
    const Json document = DocumentIn(out());
    EXPECT_EQ(document["slides"].size(), 1u);
    EXPECT_EQ(document["failed"].size(), 1u);
    if (job.Failures().size() != 1 || document["failed"].size() != 1) return absl::OkStatus();
    const Status failure = job.Failures()[0];
    EXPECT_EQ(document["failed"][0]["index"], 1);
    EXPECT_EQ(document["failed"][0]["reason"], std::string(MessageOf(failure)));
    EXPECT_EQ(MessageOf(failure).find(folder_.path()), std::string_view::npos);
    EXPECT_NE(MessageOf(failure).find("slide 1"), std::string_view::npos) << Describe(failure);
    EXPECT_EQ(job.ResultOf("spectra.summary")["failed"][0]["source_index"], 1);
    EXPECT_EQ(job.CountOf("spectra.clean"), 0u);
    return failure;
  }

 private:
  TemporaryFolder folder_;
};

void ExpectRefusal(const Status& status, absl::StatusCode code, std::string_view text) {
  EXPECT_EQ(status.code(), code) << Describe(status);
  EXPECT_NE(MessageOf(status).find(text), std::string_view::npos) << Describe(status);
}

TEST(SpectraRefusals, ASlideSmallerThanAFrame) {
  Cohort cohort;
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {PatternImage(255, 900)}).ok());
  ExpectRefusal(cohort.OnlyFailure(), absl::StatusCode::kInvalidArgument,
                "255 x 900 pixels, smaller than a frame of 256");
}

TEST(SpectraRefusals, AFileThatIsNoSlide) {
  Cohort cohort;
  ASSERT_TRUE(
      WriteFileDurably(Folders::OfThisUser(), cohort.File("1.svs"), AsBytes("not a slide")).ok());
  ExpectRefusal(cohort.OnlyFailure(), absl::StatusCode::kInvalidArgument, "neither a TIFF");
  // The file could be read whole, so it has a name.
  EXPECT_EQ(DocumentIn(cohort.out())["failed"][0]["id"],
            HmacSha256(AsBytes("00ff"), Sha256Of("not a slide").Hex()).Hex().substr(0, 16));
}

TEST(SpectraRefusals, AnEmptyPseudonymKey) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(500, 400)}).ok());
  Json manifest = SpectraManifestFor({folder.path()}, folder.File(".out"));
  manifest["pseudonym_key"] = "";
  JobRunner job = RunSpectraJob(manifest, Json::object());
  ASSERT_EQ(job.Failures().size(), 1u);
  ExpectRefusal(job.Failures()[0], absl::StatusCode::kInvalidArgument, "pseudonym_key is empty");
}

TEST(SpectraRefusals, AFileThatIsAHoleBehindItsSlideIsNotHashed) {
  Cohort cohort;
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {PatternImage(500, 400)}).ok());
  fs::resize_file(cohort.File("1.tif"), std::uint64_t{8} << 30);
  ExpectRefusal(cohort.OnlyFailure(), absl::StatusCode::kInvalidArgument,
                "the file has 8589934592 bytes (8.0 GiB), its headers name the first");
  EXPECT_TRUE(DocumentIn(cohort.out())["failed"][0]["id"].is_null());
}

TEST(SpectraRefusals, AStoreThatIsDamagedHasANameOfItsOwn) {
  Cohort cohort;
  fs::create_directories(cohort.File("1.ome.zarr"));
  std::vector<Json> names;
  for (const std::string text : {"{}", "{ }"}) {
    ASSERT_TRUE(
        WriteFileDurably(Folders::OfThisUser(), cohort.File("1.ome.zarr/zarr.json"), AsBytes(text))
            .ok());
    EXPECT_FALSE(cohort.OnlyFailure().ok());
    names.push_back(DocumentIn(cohort.out())["failed"][0]["id"]);
    fs::remove_all(cohort.out());
  }
  EXPECT_TRUE(names[0].is_string()) << names[0];
  EXPECT_NE(names[0], names[1]);
}

TEST(SpectraRefusals, ADamagedTileIsNamedByLevelRowAndColumn) {
  Cohort cohort;
  CraftedImage image = PatternImage(700, 900, 100);
  for (const std::size_t n : {std::size_t{5 * 7 + 1}, std::size_t{2 * 7 + 6}}) {
    image.pieces[n].resize(10);
  }
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {image}).ok());
  for (const int strip : {32, 1024}) {
    ExpectRefusal(cohort.OnlyFailure({{"frame", 64}, {"hop", 4}, {"strip", strip}}),
                  absl::StatusCode::kDataLoss, "level 0 row 2 column 6");
    fs::remove_all(cohort.out());
  }
}

TEST(SpectraRefusals, ATileThatLiesPastTheEndOfTheFile) {
  Cohort cohort;
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {PatternImage(700, 900, 100)}).ok());
  const std::string bytes = *ReadFile(Folders::OfThisUser(), cohort.File("1.tif"), 1 << 28);
  const auto size = bytes.size();
  // Directories are at the end: the tiles move past it when the offsets are made larger.
  std::string moved = bytes;
  const std::size_t tags = moved.find(std::string("\x44\x01\x04\x00", 4));
  ASSERT_NE(tags, std::string::npos);
  std::uint32_t at = 0;
  std::memcpy(&at, moved.data() + tags + 8, 4);
  const auto beyond = static_cast<std::uint32_t>(size);
  std::memcpy(moved.data() + at + 4 * 9, &beyond, 4);
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), cohort.File("1.tif"), AsBytes(moved)).ok());
  ExpectRefusal(cohort.OnlyFailure(), absl::StatusCode::kDataLoss, "level 0 row 1 column 2");
}

TEST(SpectraRefusals, SkippingDamageLeavesOutItsFramesAndSaysHowMany) {
  Cohort cohort;
  CraftedImage image = PatternImage(900, 900, 100);
  image.pieces[9 + 1].resize(10);
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {image}).ok());
  JobRunner job = RunSpectraJob(SpectraManifestFor({cohort.File("1.tif")}, cohort.out()),
                                {{"skip_damaged", true}});
  EXPECT_TRUE(job.Failures().empty());
  const Json slide = DocumentIn(cohort.out())["slides"][0];
  EXPECT_EQ(slide["frames_skipped"], 2 * 2 - 1 + 1);
  EXPECT_EQ(slide["frames"].get<int>() + slide["frames_skipped"].get<int>(), 36);
}

TEST(SpectraRefusals, ASlideWhoseEveryFrameIsDamaged) {
  Cohort cohort;
  CraftedImage image = PatternImage(300, 300, 300);
  image.pieces[0].resize(10);
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {image}).ok());
  ExpectRefusal(cohort.OnlyFailure({{"skip_damaged", true}}), absl::StatusCode::kFailedPrecondition,
                "every frame lies on a damaged tile");
}

TEST(SpectraRefusals, RgbOfAGreySlide) {
  Cohort cohort;
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {PatternImage(400, 400, 128, 1)}).ok());
  ExpectRefusal(cohort.OnlyFailure({{"channel", "rgb"}}), absl::StatusCode::kUnimplemented,
                "one channel");
}

TEST(SpectraRefusals, PixelsThatAreNotEightBits) {
  Cohort cohort;
  const std::string data = TestDataFolder() + "/wsi/tiff-variants/tiled-oversize-gray-i8.tif";
  if (!fs::exists(data)) GTEST_SKIP() << "no test data";
  fs::copy(data, cohort.File("1.tif"));
  ExpectRefusal(cohort.OnlyFailure(), absl::StatusCode::kUnimplemented, "");
}

TEST(SpectraRefusals, AGreySlideIsMeasuredAsItIs) {
  Cohort cohort;
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {PatternImage(400, 400, 128, 1)}).ok());
  RunSpectraJob(SpectraManifestFor({cohort.File("1.tif")}, cohort.out()), Json::object());
  EXPECT_EQ(DocumentIn(cohort.out())["slides"][0]["mean_db"].get<double>(),
            ops::MeanDb(WholeImageSums(cohort.File("1.tif"), {})[0]));
}

TEST(SpectraRefusals, AConstantSlideIsMeasuredAndFlagged) {
  Cohort cohort;
  const auto white = [](std::int64_t, std::int64_t, int) -> std::uint8_t { return 241; };
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {PatternImage(400, 400, 128, 3, white)}).ok());
  RunSpectraJob(SpectraManifestFor({cohort.File("1.tif")}, cohort.out()), Json::object());
  const Json slide = DocumentIn(cohort.out())["slides"][0];
  EXPECT_EQ(slide["frames"], 4);
  EXPECT_EQ(slide["outlier_reasons"], (Json{"flat"}));
  EXPECT_TRUE(slide["outlier"]);
}

TEST(SpectraRefusals, ASlideThatChangesUnderTheJob) {
  Cohort cohort;
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {PatternImage(400, 400)}).ok());
  const Json manifest =
      SpectraManifestFor({cohort.File("0-good.tif"), cohort.File("1.tif")}, cohort.out());
  JobRunner job(manifest, 1);
  job.Submit("spectra.plan", Json::object());
  job.stop_after = 3;  // the plan and both opens
  for (unsigned seed = 1; job.CountOf("spectra.strip") < 2 && seed < 50; ++seed) {
    fs::remove_all(cohort.out());
    job = JobRunner(manifest, seed);
    job.Submit("spectra.plan", Json::object());
    job.stop_after = 3;
    job.Run();
  }
  ASSERT_EQ(job.CountOf("spectra.strip"), 2u);
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {PatternImage(500, 400, 128, 3, 8)}).ok());
  job.stop_after = 0;
  job.Run();
  ASSERT_EQ(job.Failures().size(), 1u);
  ExpectRefusal(job.Failures()[0], absl::StatusCode::kFailedPrecondition,
                "slide 1: it changed while it was being measured");
  EXPECT_EQ(DocumentIn(cohort.out())["slides"].size(), 1u);
  EXPECT_EQ(DocumentIn(cohort.out())["failed"].size(), 1u);
}

TEST(SpectraRefusals, FoldersOutsideTheKeysAndEmptyOnes) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(400, 400)}).ok());
  fs::create_directories(folder.File("empty"));
  TaskSignals signals;
  const auto plan = [&](const Json& manifest, const PathRights& rights) {
    TaskContext context{Folders::OfThisUser(), ops::Table()};
    context.payload = Json::object();
    context.manifest = manifest;
    context.rights = rights;
    context.allowed = AllowedFoldersOf(context.rights, context.state_folder);
    context.signals = &signals;
    return context.WithSubjects(kSpectraJob.Run("spectra.plan", context).status());
  };
  const Json manifest = SpectraManifestFor({folder.File("a.tif")}, folder.File("out"));
  ExpectRefusal(plan(manifest, {{"/"}, {folder.File("elsewhere")}}),
                absl::StatusCode::kPermissionDenied, "OUT");
  ExpectRefusal(plan(manifest, {{folder.File("elsewhere")}, {"/"}}),
                absl::StatusCode::kPermissionDenied, "file 0");
  ExpectRefusal(
      plan(SpectraManifestFor({folder.File("empty")}, folder.File("out")), PathRights::All()),
      absl::StatusCode::kNotFound, "file 0");
  ExpectRefusal(
      plan(SpectraManifestFor({folder.File("a.tif")}, "/proc/nowhere"), PathRights::All()),
      absl::StatusCode::kNotFound, "OUT");
  Json keyless = manifest;
  keyless["pseudonym_key"] = "";
  ExpectRefusal(plan(keyless, PathRights::All()), absl::StatusCode::kInvalidArgument,
                "pseudonym_key");
  EXPECT_FALSE(fs::exists(folder.File("out")));
}

TEST(SpectraRefusals, SettingsOutOfRangeNameTheKey) {
  for (const auto& [settings, key] : std::vector<std::pair<Json, std::string>>{
           {{{"profile", "other"}}, "profile"},
           {{{"frame", 100}}, "frame"},
           {{{"hop", 257}}, "hop"},
           {{{"strip", 1}}, "strip"},
           {{{"window", "kaiser"}}, "window"},
           {{{"numerics", "strict"}}, "numerics"},
           {{{"numerics", "cuda"}, {"frame", 128}, {"hop", 64}}, "frame"},
           {{{"colour", 1}}, "colour"},
           {{{"tissue_only", 1}}, "tissue_only"},
           {Json::array(), "object"}}) {
    const auto parsed = ParseSpectraSettings(settings);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << settings;
    EXPECT_NE(MessageOf(parsed.status()).find(key), std::string_view::npos)
        << Describe(parsed.status());
  }
}

TEST(SpectraRefusals, ProfilesAreWhatTheyAreCalledAndFlagsWin) {
  EXPECT_EQ(ParseSpectraSettings(Json::object())->Profile(), "default");
  const SpectraSettings nedc = *ParseSpectraSettings({{"profile", "nedc"}});
  EXPECT_EQ(nedc.Profile(), "nedc");
  EXPECT_EQ(nedc.prefilter, plan::SpectralPrefilter::kGauss7);
  EXPECT_EQ(nedc.channel, plan::SpectralChannel::kRgb);
  const SpectraSettings grey = *ParseSpectraSettings({{"profile", "nedc"}, {"channel", "grey"}});
  EXPECT_EQ(grey.Profile(), "custom");
  EXPECT_EQ(ParseSpectraSettings(JsonOf(grey))->Definition(), grey.Definition());
}

TEST(SpectraTissue, OnlyFramesOnTissueCount) {
  TemporaryFolder folder;
  // Glass on the left, tissue on the right.
  const auto slide = [](std::int64_t y, std::int64_t x, int c) -> std::uint8_t {
    if (x < 800) return static_cast<std::uint8_t>(240 + (x * 7 + y * 3) % 4);
    return static_cast<std::uint8_t>((c == 1 ? 60 : 170) + PatternAt(y, x, c, 1) / 8);
  };
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(1600, 700, 128, 3, slide)}).ok());
  std::string reference;
  for (const int strip : {32, 1024}) {
    const std::string out = folder.File(StrCat("out", strip));
    JobRunner job = RunSpectraJob(SpectraManifestFor({folder.File("a.tif")}, out),
                                  {{"tissue_only", true}, {"hop", 16}, {"strip", strip}});
    ASSERT_TRUE(job.Failures().empty()) << Describe(job.Failures()[0]);
    const Json document = DocumentIn(out);
    const Json part = document["slides"][0];
    const std::int64_t rows = (700 - 256) / 16 + 1, columns = (1600 - 256) / 16 + 1;
    EXPECT_EQ(part["frames"].get<int>() + part["frames_off_tissue"].get<int>(), rows * columns);
    // Half of a frame on tissue: from column 800 - 128 on.
    const std::int64_t on = columns - (800 - 128) / 16;
    EXPECT_NEAR(part["frames"].get<double>(), static_cast<double>(rows * on),
                static_cast<double>(2 * rows));
    EXPECT_EQ(document["definition"]["tissue"]["min_fraction"], 0.5);
    if (reference.empty()) reference = DumpJson(document);
    EXPECT_EQ(DumpJson(document), reference);
  }
}

TEST(SpectraTissue, ASlideOfGlassOnlyIsLeftOut) {
  Cohort cohort;
  const auto tissue = [](std::int64_t y, std::int64_t x, int c) -> std::uint8_t {
    return static_cast<std::uint8_t>(x < 100 ? 240
                                             : (c == 1 ? 60 : 170) + PatternAt(y, x, c, 1) / 8);
  };
  const auto glass = [](std::int64_t y, std::int64_t x, int) -> std::uint8_t {
    return static_cast<std::uint8_t>(240 + (x * 7 + y * 3) % 4);
  };
  ASSERT_TRUE(WriteTiff(cohort.File("0-good.tif"), {PatternImage(600, 500, 128, 3, tissue)}).ok());
  ASSERT_TRUE(WriteTiff(cohort.File("1.tif"), {PatternImage(600, 500, 128, 3, glass)}).ok());
  ExpectRefusal(cohort.OnlyFailure({{"tissue_only", true}}), absl::StatusCode::kFailedPrecondition,
                "no frame lies on tissue");
}

}  // namespace
}  // namespace patchbay::workers
