// The image writer, its roots, verification, inspection and publishing.
#include <algorithm>
#include <thread>

#include <sys/stat.h>

#include "runtime/core/box.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/inspect.h"
#include "runtime/format/zarr/publish.h"
#include "runtime/format/zarr/store_metadata.h"
#include "runtime/format/zarr/verify.h"
#include "tests/described.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

ImageStoreSpec SmallSpec() {
  ImageStoreSpec spec;
  spec.settings.chunk = Flat(64, 64);
  spec.settings.shard = Flat(128, 128);
  spec.settings.codec_level = 1;
  spec.levels = {Flat(301, 270), Flat(151, 135)};
  spec.spacing = SpacingOfMpp(0.5, 0.5);
  spec.attributes = {{"source_kind", "aperio"}, {"source_bytes", 12345}};
  return spec;
}

std::vector<TestImage> ImagesOf(const ImageStoreSpec& spec, std::uint64_t seed = 3) {
  std::vector<TestImage> out;
  for (const Extent& l : spec.levels) {
    out.push_back(MakeImage(spec.settings.dtype, l.y, l.x, spec.settings.channels, seed));
  }
  return out;
}

std::vector<ShardRecord> RecordsOf(const ImageStoreSpec& spec, const std::vector<TestImage>& images,
                                   int threads) {
  std::vector<ShardPlace> places;
  for (std::size_t l = 0; l < spec.levels.size(); ++l) {
    const Extent grid = ShardGridOf(spec.settings, spec.levels[l]);
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      places.push_back({static_cast<int>(l), CellAt(grid, i)});
    }
  }
  std::vector<ShardRecord> records(places.size());
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      for (std::size_t i = static_cast<std::size_t>(t); i < places.size();
           i += static_cast<std::size_t>(threads)) {
        const auto l = static_cast<std::size_t>(places[i].level);
        const auto shard = EncodeShard(spec.settings, spec.levels[l], places[i],
                                       PixelsOf(images[l], spec.settings.chunk.y));
        ASSERT_TRUE(shard.ok()) << shard.status();
        records[i] = shard->record;
      }
    });
  }
  for (auto& thread : pool) thread.join();
  return records;
}

TEST(ImageWriter, TheSamePixelsGiveTheSameShardBytesEveryTime) {
  const ImageStoreSpec spec = SmallSpec();
  const auto images = ImagesOf(spec);
  const auto once =
      EncodeShard(spec.settings, spec.levels[0], {0, {0, 0, 0}}, PixelsOf(images[0], 64));
  ASSERT_TRUE(once.ok());
  for (int i = 0; i < 5; ++i) {
    const auto again =
        EncodeShard(spec.settings, spec.levels[0], {0, {0, 0, 0}}, PixelsOf(images[0], 64));
    EXPECT_EQ(again->bytes, once->bytes);
    EXPECT_EQ(again->record, once->record);
  }
}

TEST(ImageWriter, RootsAreTheSameWithOneTwoAndEightThreadsAndInAnyOrder) {
  const ImageStoreSpec spec = SmallSpec();
  const auto images = ImagesOf(spec);
  auto records = RecordsOf(spec, images, 1);
  const auto roots = CombineRoots(spec, records);
  ASSERT_TRUE(roots.ok()) << roots.status();
  for (const int threads : {2, 8}) {
    auto others = RecordsOf(spec, images, threads);
    std::reverse(others.begin(), others.end());
    EXPECT_EQ(*CombineRoots(spec, others), *roots) << threads;
  }
}

/// The byte root of a store that lists no shard files.
std::string WithoutList(const ImageStoreSpec& spec, const StoreRoots& roots) {
  std::vector<Digest> nodes;
  for (const LevelFiles& level : roots.levels) nodes.push_back(level.digest);
  return BytesRoot(*BuildMetadata(spec), nodes).Hex();
}

TEST(ImageWriter, RootsOfAKnownImageAreTheRecordedOnes) {
  // They name stores that exist: a change of either makes the same slide another store, and shards
  // that an interrupted ingest left must not be taken over: kStoreFormat of workers/jobs/ingest.
  ImageStoreSpec spec;
  spec.settings.chunk = Flat(256, 256);
  spec.settings.shard = Flat(512, 512);
  spec.levels = {Flat(700, 900), Flat(350, 450)};
  const auto zstd = CombineRoots(spec, RecordsOf(spec, ImagesOf(spec), 2));
  EXPECT_EQ(zstd->pixels.Hex(), "1b0e887ed7e11871ead290267a8909f2d31c6ad3dc72f9ab3302d0d3771782cf");
  EXPECT_EQ(zstd->bytes.Hex(), "3b358bcb6eaebcb89909be35b772183d0260e078ca3ef219eaaa1d634d0f9b4a");
  EXPECT_EQ(WithoutList(spec, *zstd),
            "462281fdff00fd6cca4fb52d6c9fb12e8570d17f5dc417fdb973cffe2bd16f2e");
  spec.settings.codec = StoreCodec::kBloscLz4;
  const auto lz4 = CombineRoots(spec, RecordsOf(spec, ImagesOf(spec), 2));
  EXPECT_EQ(lz4->pixels, zstd->pixels);
  EXPECT_EQ(lz4->bytes.Hex(), "1fb4c49c9921391c4365cb523daac3fde1fdef09e79de382da4bf9335e590a77");
  EXPECT_EQ(WithoutList(spec, *lz4),
            "9ad1290843062b12b7ed8b950e26d51663ca740c4033fbe06cc3b4060871311b");
}

TEST(ImageWriter, PixelRootSurvivesAnotherCodecFillValueAndShardSizeWhileByteRootDoesNot) {
  ImageStoreSpec spec = SmallSpec();
  const auto images = ImagesOf(spec);
  const auto zstd = CombineRoots(spec, RecordsOf(spec, images, 1));
  ASSERT_TRUE(zstd.ok());
  spec.settings.codec = StoreCodec::kBloscLz4;
  spec.settings.fill_value = 0;
  spec.settings.shard = Flat(256, 256);
  const auto lz4 = CombineRoots(spec, RecordsOf(spec, images, 1));
  ASSERT_TRUE(lz4.ok());
  EXPECT_EQ(zstd->pixels, lz4->pixels);
  EXPECT_NE(zstd->bytes, lz4->bytes);
  auto altered = images;
  altered[1].bytes[5000] ^= std::byte{1};
  EXPECT_NE(CombineRoots(spec, RecordsOf(spec, altered, 1))->pixels, lz4->pixels);
}

TEST(ImageWriter, IdentityAttributesDoNotEnterTheRootsAndOthersDo) {
  ImageStoreSpec spec = SmallSpec();
  const auto records = RecordsOf(spec, ImagesOf(spec), 1);
  const auto plain = CombineRoots(spec, records);
  spec.attributes["identity"] = {{"pseudonym", "a1b2"}};
  EXPECT_EQ(*CombineRoots(spec, records), *plain);
  spec.attributes["objective_power"] = 40;
  EXPECT_NE(CombineRoots(spec, records)->bytes, plain->bytes);
}

TEST(ImageWriter, CombiningRefusesMissingDoubleForeignAndShortRecords) {
  const ImageStoreSpec spec = SmallSpec();
  const auto records = RecordsOf(spec, ImagesOf(spec), 1);
  auto missing = records;
  missing.pop_back();
  EXPECT_THAT(std::string(MessageOf(CombineRoots(spec, missing).status())),
              testing::HasSubstr("missing"));
  auto twice = records;
  twice.push_back(records[0]);
  EXPECT_THAT(std::string(MessageOf(CombineRoots(spec, twice).status())),
              testing::HasSubstr("twice"));
  auto outside = records;
  outside[0].place.at.y = 99;
  EXPECT_TRUE(absl::IsInvalidArgument(CombineRoots(spec, outside).status()));
  auto unknown = records;
  unknown[0].place.level = 7;
  EXPECT_TRUE(absl::IsInvalidArgument(CombineRoots(spec, unknown).status()));
  auto short_record = records;
  short_record[0].chunk_pixels.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(CombineRoots(spec, short_record).status()));
}

TEST(ImageWriter, BackgroundChunksAreNotStoredAndAShardOfThemIsNoFile) {
  ImageStoreSpec spec = SmallSpec();
  spec.levels = {Flat(128, 300)};
  TestImage image = MakeImage(DType::kUint8, 128, 300, 3, 1);
  std::fill(image.bytes.begin(), image.bytes.end(), std::byte{255});
  const std::size_t marked = (70 * 300 + 130) * 3;  // second shard, third chunk
  image.bytes[marked] = std::byte{9};
  const TempFolder folder;
  WriteStore(folder / "s", spec, {image});
  EXPECT_FALSE(std::filesystem::exists(folder / "s/0/c/0/0/0"));
  EXPECT_TRUE(std::filesystem::exists(folder / "s/0/c/0/0/1"));
  EXPECT_FALSE(std::filesystem::exists(folder / "s/0/c/0/0/2"));
  const auto array = Array::Open(Folders::OfThisUser(), folder / "s/0");
  ASSERT_TRUE(array.ok());
  std::vector<std::byte> bytes;
  EXPECT_TRUE(array->FetchChunk({0, 0, 0}, bytes, 0)->absent);
  EXPECT_TRUE(array->FetchChunk({0, 0, 2}, bytes, 0)->absent);
  EXPECT_FALSE(array->FetchChunk({0, 1, 2}, bytes, 0)->absent);
  EXPECT_TRUE(array->FetchChunk({0, 1, 4}, bytes, 0)->absent);
  const auto all = ReadAll(*array);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)[70 * 300 + 130], std::byte{9});
  EXPECT_EQ(std::count(all->begin(), all->end(), std::byte{255}), 128 * 300 * 3 - 1);
}

TEST(ImageWriter, RecordsSurviveJson) {
  const ImageStoreSpec spec = SmallSpec();
  const auto record = RecordsOf(spec, ImagesOf(spec), 1)[2];
  const auto parsed = FromJson<ShardRecord>(JsonOf(record), "record");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, record);
}

TEST(ImageWriter, SettingsOutOfRangeAreRefusedByName) {
  const auto refused = [](auto change, const char* name) {
    ImageStoreSettings s;
    change(s);
    const Status status = Validate(s);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(std::string(MessageOf(status)), testing::HasSubstr(name));
  };
  refused([](auto& s) { s.chunk = Flat(8, 8); }, "chunk");
  refused([](auto& s) { s.shard = Flat(4097, 4097); }, "shard");
  refused([](auto& s) { s.codec_level = 10; }, "codec-level");
  refused([](auto& s) { s.channels = 0; }, "channels");
  refused([](auto& s) { s.dtype = DType::kFloat64; }, "dtype");
  refused([](auto& s) { s.fill_value = 256; }, "fill_value");
  refused([](auto& s) { s.fill_value = 1.5; }, "fill_value");
  refused([](auto& s) { s.shard.z = 2; }, "slices of a 2-D image");
  refused([](auto& s) { s.axes = StoreAxes::kZyx; }, "channels");
  const auto volume = [&](auto change, const char* name) {
    refused(
        [&](auto& s) {
          s = VolumeSettings(DType::kInt16);
          change(s);
        },
        name);
  };
  volume([](auto& s) { s.fill_value = -32769; }, "-32768 to 32767");
  volume([](auto& s) { s.axes = StoreAxes::kCzyx; }, "1 of a volume of several");
  volume([](auto& s) { s.chunk.z = 0; }, "along z");
  volume([](auto& s) { s.shard.z = 100; }, "along z");
  volume([](auto& s) { s.chunk = s.shard = {1024, 1024, 1024}; }, "chunk");
  EXPECT_FALSE(StoreCodecFromName("gzip").ok());
  ImageStoreSpec spec = SmallSpec();
  spec.attributes["patient_name"] = "x";
  const auto status = CombineRoots(spec, {}).status();
  EXPECT_THAT(std::string(MessageOf(status)), testing::HasSubstr("patient_name"));
}

TEST(ImageWriter, AnErrorOfThePixelsPassesThrough) {
  const ImageStoreSpec spec = SmallSpec();
  const auto shard = EncodeShard(spec.settings, spec.levels[0], {0, {0, 0, 0}},
                                 [](const Point&, const TensorView&) -> Status {
                                   return absl::DataLossError("tile 4 is broken");
                                 });
  EXPECT_TRUE(absl::IsDataLoss(shard.status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      EncodeShard(spec.settings, spec.levels[0], {0, {0, 3, 0}}, PixelsOf(ImagesOf(spec)[0], 64))
          .status()));
}

TEST(VerifyStore, FindsAFreshStoreCleanWithAnyNumberOfThreads) {
  const ImageStoreSpec spec = SmallSpec();
  const TempFolder folder;
  const StoreRoots roots = WriteStore(folder / "s", spec, ImagesOf(spec));
  for (const int threads : {1, 2, 8}) {
    std::int64_t last = 0, total = 0;
    const auto report = VerifyStore(Folders::OfThisUser(), folder / "s", {.threads = threads},
                                    [&](std::int64_t done, std::int64_t all) {
                                      last = done;
                                      total = all;
                                      return absl::OkStatus();
                                    });
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->Clean()) << (report->bad.empty() ? "" : report->bad[0]);
    EXPECT_EQ(report->computed, roots);
    EXPECT_EQ(last, total);
    EXPECT_EQ(report->chunks, 5 * 5 + 3 * 3);
  }
}

TEST(VerifyStore, EndsWhereItsProgressSaysSo) {
  const ImageStoreSpec spec = SmallSpec();
  const TempFolder folder;
  WriteStore(folder / "s", spec, ImagesOf(spec));
  for (const int threads : {1, 2}) {
    std::int64_t most = 0;
    const auto report =
        VerifyStore(Folders::OfThisUser(), folder / "s", {.threads = threads},
                    [&](std::int64_t done, std::int64_t) {
                      most = done;
                      return done < 2 ? absl::OkStatus() : absl::CancelledError("enough");
                    });
    EXPECT_TRUE(absl::IsCancelled(report.status())) << report.status();
    EXPECT_EQ(most, 2);
  }
}

TEST(VerifyStore, EndsInALabelSetToo) {
  const ImageStoreSpec spec = SmallSpec();
  const TempFolder folder;
  const std::string store = folder / "s";
  WriteStore(store, spec, ImagesOf(spec));
  WriteStore(store + "/labels/cells.0123456789abcdef", spec, ImagesOf(spec));
  int calls = 0;
  const auto count = [&](std::int64_t, std::int64_t) {
    ++calls;
    return absl::OkStatus();
  };
  ASSERT_TRUE(VerifyStore(Folders::OfThisUser(), store, {.threads = 1}, count).ok());
  const int of_image = calls / 2;
  calls = 0;
  const auto report =
      VerifyStore(Folders::OfThisUser(), store, {.threads = 1}, [&](std::int64_t, std::int64_t) {
        return ++calls <= of_image + 2 ? absl::OkStatus() : absl::CancelledError("enough");
      });
  EXPECT_TRUE(absl::IsCancelled(report.status())) << report.status();
  EXPECT_EQ(calls, of_image + 3);
}

TEST(VerifyStore, NamesEveryAlteredChunk) {
  const ImageStoreSpec spec = SmallSpec();
  const TempFolder folder;
  WriteStore(folder / "s", spec, ImagesOf(spec));
  const std::string path = folder / "s/0/c/0/1/0";
  std::string bytes = ReadText(path);
  bytes[40] = static_cast<char>(bytes[40] ^ 1);
  WriteText(path, bytes);
  const auto report = VerifyStore(Folders::OfThisUser(), folder / "s");
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->faults, 1u);
  EXPECT_FALSE(report->Clean());
  EXPECT_THAT(report->bad[0], testing::MatchesRegex("0/c/0/1/0: chunk \\(0,2,0\\): crc32c mismatch "
                                                    "\\(stored [0-9a-f]+, computed [0-9a-f]+\\)"));
  const auto array = Array::Open(Folders::OfThisUser(), folder / "s/0");
  const auto read = ReadAll(*array);
  EXPECT_TRUE(absl::IsDataLoss(read.status()));
  EXPECT_THAT(std::string(MessageOf(read.status())),
              testing::MatchesRegex("read chunk: .*s/0/c/0/1/0: chunk \\(0,2,0\\): crc32c mismatch "
                                    "\\(stored [0-9a-f]+, computed [0-9a-f]+\\)"));
}

TEST(VerifyStore, SeesTruncationMissingShardsExtraFilesAndChangedMetadata) {
  const ImageStoreSpec spec = SmallSpec();
  const auto images = ImagesOf(spec);
  const auto fresh = [&](const std::string& store) { WriteStore(store, spec, images); };
  const TempFolder folder;
  fresh(folder / "cut");
  std::string bytes = ReadText(folder / "cut/0/c/0/0/0");
  WriteText(folder / "cut/0/c/0/0/0", std::string_view(bytes).substr(0, bytes.size() - 1));
  const auto cut = VerifyStore(Folders::OfThisUser(), folder / "cut");
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(cut->faults, 1u);
  EXPECT_THAT(cut->bad[0], testing::HasSubstr("0/c/0/0/0: index"));

  fresh(folder / "gone");
  std::filesystem::remove(folder / "gone/0/c/0/0/0");
  const auto gone = VerifyStore(Folders::OfThisUser(), folder / "gone");
  EXPECT_FALSE(gone->Clean());
  ASSERT_EQ(gone->faults, 1u);
  EXPECT_THAT(gone->bad[0], testing::HasSubstr("0/c/0/0/0: missing"));

  fresh(folder / "extra");
  WriteText(folder / "extra/0/c/0/0/9", "x");
  const auto extra = VerifyStore(Folders::OfThisUser(), folder / "extra");
  EXPECT_THAT(extra->bad, testing::ElementsAre("0/c/0/0/9: not a file of this store"));

  fresh(folder / "meta");
  std::string text = ReadText(folder / "meta/zarr.json");
  text.replace(text.find("aperio"), 6, "aperia");
  WriteText(folder / "meta/zarr.json", text);
  const auto meta = VerifyStore(Folders::OfThisUser(), folder / "meta");
  EXPECT_EQ(meta->faults, 1u);
  EXPECT_FALSE(meta->Clean());
}

TEST(VerifyStore, RefusesWhatItCannotLookAt) {
  const TempFolder folder;
  const Status nothing = VerifyStore(Folders::OfThisUser(), folder / "nothing").status();
  EXPECT_TRUE(absl::IsNotFound(nothing));
  EXPECT_THAT(MessageOf(nothing), testing::EndsWith("/nothing: no such folder"));
  WriteText(folder / "file", "x");
  EXPECT_THAT(MessageOf(VerifyStore(Folders::OfThisUser(), folder / "file").status()),
              testing::EndsWith("/file: a file, not a store's folder "
                                "(`patchbay ingest` makes a store from a slide or volume)"));
  std::filesystem::create_directories(folder / "empty");
  EXPECT_THAT(MessageOf(VerifyStore(Folders::OfThisUser(), folder / "empty").status()),
              testing::EndsWith("/empty: no Zarr group here"));
  WriteText(folder / "v2/.zgroup", R"({"zarr_format": 2})");
  const Status v2 = VerifyStore(Folders::OfThisUser(), folder / "v2").status();
  EXPECT_TRUE(absl::IsUnimplemented(v2));
  EXPECT_THAT(MessageOf(v2), testing::HasSubstr("not a store of Patchbay's image writer, and only "
                                                "those have digests to verify: it is Zarr v2"));
  if (TestData().empty()) GTEST_SKIP() << "no test data";
  EXPECT_TRUE(absl::IsUnimplemented(
      VerifyStore(Folders::OfThisUser(), TestData() + "/zarr/ome/simple_0.5").status()));
}

TEST(InspectStore, SaysWhatTheCommandPrints) {
  const ImageStoreSpec spec = SmallSpec();
  const TempFolder folder;
  const StoreRoots roots = WriteStore(folder / "s", spec, ImagesOf(spec));
  const auto report = InspectStore(Folders::OfThisUser(), folder / "s");
  ASSERT_TRUE(report.ok()) << report.status();
  const Json json = JsonOf(*report);
  EXPECT_EQ(json["digest"], roots.bytes.Hex());
  EXPECT_EQ(json["pixel_digest"], roots.pixels.Hex());
  EXPECT_EQ(json["source"], Json({{"kind", "aperio"}, {"bytes", 12345}}));
  EXPECT_EQ(json["levels"][1]["shape"], Json({3, 151, 135}));
  EXPECT_EQ(json["levels"][1]["chunk"], Json({3, 64, 64}));
  EXPECT_NEAR(json["levels"][1]["downsample"].get<double>(), 2.0, 0.01);
  EXPECT_EQ(json["mpp"], Json({0.5, 0.5}));
  EXPECT_GT(json["stored_bytes"].get<std::int64_t>(), 1000);
  if (TestData().empty()) GTEST_SKIP() << "no test data";
  const auto foreign = InspectStore(Folders::OfThisUser(), TestData() + "/zarr/ome/simple_0.4");
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  const Json said = JsonOf(*foreign);
  for (const char* key : {"digest", "pixel_digest"}) EXPECT_TRUE(said.at(key).is_null()) << key;
  EXPECT_EQ(said.at("source"), Json({{"kind", nullptr}, {"bytes", nullptr}}));
  EXPECT_EQ(said.at("mpp"), Json({0.004, 0.03}));
}

TEST(InspectStore, ReportsComeBackFromJson) {
  test::ExpectEveryFieldComesBack<AxisReport>();
  test::ExpectEveryFieldComesBack<ScannerReport>();
  test::ExpectEveryFieldComesBack<RangeReport>();
  test::ExpectEveryFieldComesBack<LevelReport>();
  test::ExpectEveryFieldComesBack<SourceReport>();
  test::ExpectEveryFieldComesBack<RecordedFacts>();
  test::ExpectEveryFieldComesBack<ImageReport>();
}

TEST(InspectStore, RecordedFactsAreRepeatedWithoutTheValuesOfALookup) {
  ImageStoreSpec spec = SmallSpec();
  spec.attributes["icc_to_srgb"] = {{"digest", "ab"}, {"values", "long"}};
  spec.attributes["mpp_assumed"] = 0.25;
  spec.attributes["warnings"] = {"dark"};
  const TempFolder folder;
  WriteStore(folder / "s", spec, ImagesOf(spec));
  const auto report = InspectStore(Folders::OfThisUser(), folder / "s");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->icc_to_srgb, Json({{"digest", "ab"}}));
  EXPECT_EQ(report->mpp_assumed, 0.25);
  EXPECT_EQ(report->warnings, std::vector<std::string>({"dark"}));
}

TEST(InspectStore, DownsamplesAreThoseOfTheMetadata) {
  ImageStoreSpec spec = SmallSpec();
  spec.downsamples = {{1, 1}, {2, 2}};
  const TempFolder folder;
  WriteStore(folder / "s", spec, ImagesOf(spec));
  const auto report = InspectStore(Folders::OfThisUser(), folder / "s");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->levels[0].downsample, 1.0);
  EXPECT_EQ(report->levels[1].downsample, 2.0);  // 151 x 135 of 301 x 270 pixels
  Json without = Json::parse(ReadText(folder / "s/zarr.json"));
  for (Json& level : without["attributes"]["ome"]["multiscales"][0]["datasets"]) {
    level["coordinateTransformations"][0]["scale"] = {1, 1, 1};
  }
  WriteText(folder / "s/zarr.json", without.dump());
  const auto shapes = InspectStore(Folders::OfThisUser(), folder / "s");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_NEAR(shapes->levels[1].downsample, 1.997, 0.001);
}

/// The transforms of a kind, level by level.
std::vector<std::vector<double>> TransformsOf(const ImageStoreSpec& spec, const char* kind) {
  const auto documents = BuildMetadata(spec);
  EXPECT_TRUE(documents.ok()) << documents.status();
  const Json& root = documents->at("zarr.json");
  std::vector<std::vector<double>> found;
  for (const Json& level : root["attributes"]["ome"]["multiscales"][0]["datasets"]) {
    for (const Json& transform : level["coordinateTransformations"]) {
      if (transform["type"] == kind) found.push_back(transform[kind].get<std::vector<double>>());
    }
  }
  return found;
}

TEST(BuildMetadata, LevelsOfAVolumeDoubleTheirStepsAndLieAtTheirCentres) {
  const auto mm = [](double value) { return AxisSpacing{value, LengthUnit::kMillimeter}; };
  ImageStoreSpec spec;
  spec.settings = VolumeSettings(DType::kInt16);
  spec.levels = {{12, 101, 1}, {6, 51, 1}, {3, 26, 1}, {2, 13, 1}, {1, 7, 1}, {1, 4, 1}};
  spec.spacing = {mm(5), mm(3), mm(0.7)};
  using Rows = std::vector<std::vector<double>>;
  // Where one voxel is left, nothing is averaged any more.
  EXPECT_EQ(
      TransformsOf(spec, "scale"),
      (Rows{
          {5, 3, 0.7}, {10, 6, 0.7}, {20, 12, 0.7}, {40, 24, 0.7}, {80, 48, 0.7}, {80, 96, 0.7}}));
  EXPECT_EQ(TransformsOf(spec, "translation"), (Rows{{0, 0, 0},
                                                     {2.5, 1.5, 0},
                                                     {7.5, 4.5, 0},
                                                     {17.5, 10.5, 0},
                                                     {37.5, 22.5, 0},
                                                     {37.5, 46.5, 0}}));
  // Levels of slides are as their scanner made them.
  EXPECT_EQ(TransformsOf(SmallSpec(), "scale"),
            (Rows{{1, 0.5, 0.5}, {1, 0.5 * 301 / 151, 0.5 * 2}}));
  EXPECT_EQ(TransformsOf(SmallSpec(), "translation"), Rows());
}

TEST(PublishStore, MovesACompleteStoreToItsNameAndRefusesATakenOne) {
  const TempFolder folder;
  WriteText(folder / "staging/s/zarr.json", "{}");
  WriteText(folder / "staging/s/0/c/0/0/0", "abc");
  ASSERT_TRUE(PublishStore(Folders::OfThisUser(), folder / "staging/s", folder / "s", [] {}).ok());
  EXPECT_EQ(ReadText(folder / "s/0/c/0/0/0"), "abc");
  EXPECT_FALSE(std::filesystem::exists(folder / "staging/s"));
  WriteText(folder / "staging/s/zarr.json", "{}");
  const Status taken =
      PublishStore(Folders::OfThisUser(), folder / "staging/s", folder / "s", [] {});
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_TRUE(std::filesystem::exists(folder / "staging/s/zarr.json"));
  EXPECT_EQ(ReadText(folder / "s/0/c/0/0/0"), "abc");
  std::filesystem::create_directories(folder / "empty");
  EXPECT_TRUE(absl::IsAlreadyExists(
      PublishStore(Folders::OfThisUser(), folder / "staging/s", folder / "empty", [] {})));
  EXPECT_TRUE(
      absl::IsNotFound(PublishStore(Folders::OfThisUser(), folder / "none", folder / "t", [] {})));
  std::filesystem::create_symlink("/etc", folder / "staging/s/link");
  EXPECT_TRUE(absl::IsFailedPrecondition(
      PublishStore(Folders::OfThisUser(), folder / "staging/s", folder / "t", [] {})));
  EXPECT_FALSE(std::filesystem::exists(folder / "t"));
}

/// The rule written down again, slowly.
template <typename T>
TestImage SlowHalf(const TestImage& in) {
  TestImage out{in.dtype, (in.height + 1) / 2, (in.width + 1) / 2, in.channels,
                {},       (in.depth + 1) / 2};
  out.bytes.resize(static_cast<std::size_t>(out.depth * out.height * out.width * out.channels) *
                   sizeof(T));
  const auto* from = reinterpret_cast<const T*>(in.bytes.data());
  auto* to = reinterpret_cast<T*>(out.bytes.data());
  const Extent size{in.depth, in.height, in.width}, half{out.depth, out.height, out.width};
  for (std::int64_t i = 0; i < half.Pixels(); ++i) {
    const Point p = CellAt(half, i);
    const Box box = Intersect(BoxAt({2 * p.z, 2 * p.y, 2 * p.x}, {2, 2, 2}), WholeOf(size));
    for (std::int64_t c = 0; c < in.channels; ++c) {
      double sum = 0;
      for (std::int64_t j = 0; j < box.Pixels(); ++j) {
        const Point q = CellAt(box.Shape(), j);
        sum += from[IndexOf(size, {box.z + q.z, box.y + q.y, box.x + q.x}) * in.channels + c];
      }
      const double mean = sum / static_cast<double>(box.Pixels());
      to[i * in.channels + c] =
          static_cast<T>(std::is_floating_point_v<T> ? mean : std::floor(mean + 0.5));
    }
  }
  return out;
}

TEST(Downsample, AveragesFourPixelsHalfUpForEveryShapeChannelCountAndType) {
  for (const DType dtype : {DType::kUint8, DType::kUint16}) {
    for (const std::int64_t channels : {1, 2, 3, 4, 5, 9}) {
      for (const auto& [h, w] : {std::pair{1, 1}, {1, 7}, {2, 2}, {5, 33}, {64, 64}, {31, 129}}) {
        TestImage in = MakeImage(dtype, h, w, channels, static_cast<std::uint64_t>(h * w));
        for (std::size_t i = 0; i < in.bytes.size(); ++i)
          in.bytes[i] = static_cast<std::byte>(Mix(i));
        const TestImage expected =
            dtype == DType::kUint8 ? SlowHalf<std::uint8_t>(in) : SlowHalf<std::uint16_t>(in);
        TestImage out{dtype, expected.height, expected.width, channels, {}};
        out.bytes.resize(expected.bytes.size() + 16, std::byte{0x5a});
        const auto view =
            ContiguousView<4>(out.bytes.data(), dtype, {1, out.height, out.width, channels});
        ASSERT_TRUE(DownsampleByTwo(in.View(), view).ok());
        const std::vector<std::byte> guard(16, std::byte{0x5a});
        EXPECT_TRUE(std::equal(guard.begin(), guard.end(), out.bytes.end() - 16));
        out.bytes.resize(expected.bytes.size());
        EXPECT_EQ(out.bytes, expected.bytes) << h << "x" << w << "x" << channels;
      }
    }
  }
}

template <typename T>
void ExpectVolumesHalve(DType dtype) {
  for (const Extent& size : {Extent{1, 1, 1}, {2, 2, 2}, {3, 5, 7}, {8, 33, 20}, {5, 1, 64}}) {
    const TestImage in = MakeVolume<T>(dtype, size, 3);
    const TestImage expected = SlowHalf<T>(in);
    std::vector<std::byte> out(expected.bytes.size());
    const Extent half = HalfOf(size);
    const auto view = ContiguousView<4>(out.data(), dtype, {half.z, half.y, half.x, 1});
    ASSERT_TRUE(DownsampleByTwo(in.View(), view).ok());
    EXPECT_EQ(out, expected.bytes) << size.ToString() << " " << patchbay::NameOf(dtype);
  }
}

TEST(Downsample, AveragesEightVoxelsHalfUpForEveryType) {
  ExpectVolumesHalve<std::uint8_t>(DType::kUint8);
  ExpectVolumesHalve<std::uint16_t>(DType::kUint16);
  ExpectVolumesHalve<std::int16_t>(DType::kInt16);
  ExpectVolumesHalve<float>(DType::kFloat32);
}

TEST(Downsample, RefusesViewsThatDoNotFit) {
  const TestImage in = MakeImage(DType::kUint8, 8, 8, 3, 1);
  std::vector<std::byte> out(300);
  EXPECT_FALSE(
      DownsampleByTwo(in.View(), ContiguousView<4>(out.data(), DType::kUint8, {1, 4, 5, 3})).ok());
  EXPECT_FALSE(
      DownsampleByTwo(in.View(), ContiguousView<4>(out.data(), DType::kUint16, {1, 4, 4, 3})).ok());
  auto planar = ContiguousView<4>(out.data(), DType::kUint8, {1, 4, 4, 3});
  planar.stride_bytes = {48, 4, 1, 16};
  EXPECT_FALSE(DownsampleByTwo(in.View(), planar).ok());
}

}  // namespace
}  // namespace patchbay::zarr
