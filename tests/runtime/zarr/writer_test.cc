// The image writer, its roots, verification, inspection and publishing.
#include <algorithm>
#include <thread>

#include <sys/stat.h>

#include "runtime/zarr/downsample.h"
#include "runtime/zarr/publish.h"
#include "runtime/zarr/store_metadata.h"
#include "runtime/zarr/verify.h"
#include "tests/runtime/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

ImageStoreSpec SmallSpec() {
  ImageStoreSpec spec;
  spec.settings.chunk_px = 64;
  spec.settings.shard_px = 128;
  spec.settings.codec_level = 1;
  spec.levels = {{301, 270}, {151, 135}};
  spec.mpp_y = 0.5;
  spec.mpp_x = 0.5;
  spec.attributes = {{"source_kind", "aperio"}, {"source_bytes", 12345}};
  return spec;
}

std::vector<TestImage> ImagesOf(const ImageStoreSpec& spec, std::uint64_t seed = 3) {
  std::vector<TestImage> out;
  for (const LevelSize& l : spec.levels) {
    out.push_back(MakeImage(spec.settings.dtype, l.height, l.width, spec.settings.channels, seed));
  }
  return out;
}

std::vector<ShardRecord> RecordsOf(const ImageStoreSpec& spec, const std::vector<TestImage>& images,
                                   int threads) {
  std::vector<ShardPlace> places;
  for (std::size_t l = 0; l < spec.levels.size(); ++l) {
    const LevelSize grid = ShardGridOf(spec.settings, spec.levels[l]);
    for (std::int64_t i = 0; i < grid.height * grid.width; ++i) {
      places.push_back({static_cast<int>(l), i / grid.width, i % grid.width});
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
                                       PixelsOf(images[l], spec.settings.chunk_px));
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
  const auto once = EncodeShard(spec.settings, spec.levels[0], {0, 0, 0}, PixelsOf(images[0], 64));
  ASSERT_TRUE(once.ok());
  for (int i = 0; i < 5; ++i) {
    const auto again =
        EncodeShard(spec.settings, spec.levels[0], {0, 0, 0}, PixelsOf(images[0], 64));
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
  spec.settings.chunk_px = 256;
  spec.settings.shard_px = 512;
  spec.levels = {{700, 900}, {350, 450}};
  const auto zstd = CombineRoots(spec, RecordsOf(spec, ImagesOf(spec), 2));
  EXPECT_EQ(zstd->pixels.Hex(), "e3bf721496a40cdd549f137ffe6fab9de2da5085acc80fd268e5432968664ef8");
  EXPECT_EQ(zstd->bytes.Hex(), "92a791f94aa14112e27c1a7fad907be1c8e7f88d629ef43efaa15a0f6cc893cf");
  EXPECT_EQ(WithoutList(spec, *zstd),
            "b3ec220d0e82953f95bad81e42252eae0afc7f209a39853fb606aba353c3a0c9");
  spec.settings.codec = StoreCodec::kBloscLz4;
  const auto lz4 = CombineRoots(spec, RecordsOf(spec, ImagesOf(spec), 2));
  EXPECT_EQ(lz4->pixels, zstd->pixels);
  EXPECT_EQ(lz4->bytes.Hex(), "0a285042d1ebf30aa8607ecf0318e70bb69fccc934032c18cf850f2a186424ed");
  EXPECT_EQ(WithoutList(spec, *lz4),
            "59d3df3684dc9b61e54963dc320f22b8982630e62152f8fb13355921360e9e80");
}

TEST(ImageWriter, PixelRootSurvivesAnotherCodecFillValueAndShardSizeWhileByteRootDoesNot) {
  ImageStoreSpec spec = SmallSpec();
  const auto images = ImagesOf(spec);
  const auto zstd = CombineRoots(spec, RecordsOf(spec, images, 1));
  ASSERT_TRUE(zstd.ok());
  spec.settings.codec = StoreCodec::kBloscLz4;
  spec.settings.fill_value = 0;
  spec.settings.shard_px = 256;
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
  outside[0].place.row = 99;
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
  spec.levels = {{128, 300}};
  TestImage image = MakeImage(DType::kUint8, 128, 300, 3, 1);
  std::fill(image.bytes.begin(), image.bytes.end(), std::byte{255});
  const std::size_t marked = (70 * 300 + 130) * 3;  // second shard, third chunk
  image.bytes[marked] = std::byte{9};
  const TempFolder folder;
  WriteStore(folder / "s", spec, {image});
  EXPECT_FALSE(std::filesystem::exists(folder / "s/0/c/0/0/0"));
  EXPECT_TRUE(std::filesystem::exists(folder / "s/0/c/0/0/1"));
  EXPECT_FALSE(std::filesystem::exists(folder / "s/0/c/0/0/2"));
  const auto array = Array::Open(folder / "s/0");
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

TEST(ImageWriter, SettingsAndRecordsSurviveJson) {
  ImageStoreSettings settings;
  settings.codec = StoreCodec::kZstd;
  settings.codec_level = 19;
  settings.dtype = DType::kUint16;
  settings.fill_value = 65535;
  const auto again = ImageStoreSettingsFromJson(ToJson(settings));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToJson(*again), ToJson(settings));
  const ImageStoreSpec spec = SmallSpec();
  const auto record = RecordsOf(spec, ImagesOf(spec), 1)[2];
  const auto parsed = ShardRecordFromJson(ToJson(record));
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
  refused([](auto& s) { s.chunk_px = 8; }, "chunk");
  refused([](auto& s) { s.shard_px = 4097; }, "shard");
  refused([](auto& s) { s.codec_level = 10; }, "codec-level");
  refused([](auto& s) { s.channels = 0; }, "channels");
  refused([](auto& s) { s.dtype = DType::kFloat32; }, "dtype");
  refused([](auto& s) { s.fill_value = 256; }, "fill_value");
  EXPECT_FALSE(StoreCodecFromName("gzip").ok());
  ImageStoreSpec spec = SmallSpec();
  spec.attributes["patient_name"] = "x";
  const auto status = CombineRoots(spec, {}).status();
  EXPECT_THAT(std::string(MessageOf(status)), testing::HasSubstr("patient_name"));
}

TEST(ImageWriter, AnErrorOfThePixelsPassesThrough) {
  const ImageStoreSpec spec = SmallSpec();
  const auto shard = EncodeShard(spec.settings, spec.levels[0], {0, 0, 0},
                                 [](std::int64_t, std::int64_t, const TensorView&) -> Status {
                                   return absl::DataLossError("tile 4 is broken");
                                 });
  EXPECT_TRUE(absl::IsDataLoss(shard.status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      EncodeShard(spec.settings, spec.levels[0], {0, 3, 0}, PixelsOf(ImagesOf(spec)[0], 64))
          .status()));
}

TEST(VerifyStore, FindsAFreshStoreCleanWithAnyNumberOfThreads) {
  const ImageStoreSpec spec = SmallSpec();
  const TempFolder folder;
  const StoreRoots roots = WriteStore(folder / "s", spec, ImagesOf(spec));
  for (const int threads : {1, 2, 8}) {
    std::int64_t last = 0, total = 0;
    const auto report =
        VerifyStore(folder / "s", {.threads = threads}, [&](std::int64_t done, std::int64_t all) {
          last = done;
          total = all;
        });
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->Clean()) << (report->bad.empty() ? "" : report->bad[0]);
    EXPECT_EQ(report->computed, roots);
    EXPECT_EQ(last, total);
    EXPECT_EQ(report->chunks, 5 * 5 + 3 * 3);
  }
}

TEST(VerifyStore, NamesEveryAlteredChunk) {
  const ImageStoreSpec spec = SmallSpec();
  const TempFolder folder;
  WriteStore(folder / "s", spec, ImagesOf(spec));
  const std::string path = folder / "s/0/c/0/1/0";
  std::string bytes = ReadText(path);
  bytes[40] = static_cast<char>(bytes[40] ^ 1);
  WriteText(path, bytes);
  const auto report = VerifyStore(folder / "s");
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->faults, 1u);
  EXPECT_FALSE(report->Clean());
  EXPECT_THAT(report->bad[0], testing::MatchesRegex("0/c/0/1/0 chunk \\(0,2,0\\): crc32c mismatch "
                                                    "\\(stored [0-9a-f]+, computed [0-9a-f]+\\)"));
  const auto array = Array::Open(folder / "s/0");
  const auto read = ReadAll(*array);
  EXPECT_TRUE(absl::IsDataLoss(read.status()));
  EXPECT_THAT(std::string(MessageOf(read.status())),
              testing::MatchesRegex("read chunk: .*s/0/c/0/1/0 chunk \\(0,2,0\\): crc32c mismatch "
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
  const auto cut = VerifyStore(folder / "cut");
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(cut->faults, 1u);
  EXPECT_THAT(cut->bad[0], testing::HasSubstr("0/c/0/0/0: index"));

  fresh(folder / "gone");
  std::filesystem::remove(folder / "gone/0/c/0/0/0");
  const auto gone = VerifyStore(folder / "gone");
  EXPECT_FALSE(gone->Clean());
  ASSERT_EQ(gone->faults, 1u);
  EXPECT_THAT(gone->bad[0], testing::HasSubstr("0/c/0/0/0: missing"));

  fresh(folder / "extra");
  WriteText(folder / "extra/0/c/0/0/9", "x");
  const auto extra = VerifyStore(folder / "extra");
  EXPECT_THAT(extra->bad, testing::ElementsAre("0/c/0/0/9: not a file of this store"));

  fresh(folder / "meta");
  std::string text = ReadText(folder / "meta/zarr.json");
  text.replace(text.find("aperio"), 6, "aperia");
  WriteText(folder / "meta/zarr.json", text);
  const auto meta = VerifyStore(folder / "meta");
  EXPECT_EQ(meta->faults, 1u);
  EXPECT_FALSE(meta->Clean());
}

TEST(VerifyStore, RefusesWhatItCannotLookAt) {
  const TempFolder folder;
  const Status nothing = VerifyStore(folder / "nothing").status();
  EXPECT_TRUE(absl::IsNotFound(nothing));
  EXPECT_THAT(MessageOf(nothing), testing::EndsWith("/nothing: there is no such folder"));
  WriteText(folder / "file", "x");
  EXPECT_THAT(MessageOf(VerifyStore(folder / "file").status()),
              testing::EndsWith("/file: a file, not a store's folder"));
  std::filesystem::create_directories(folder / "empty");
  EXPECT_THAT(MessageOf(VerifyStore(folder / "empty").status()),
              testing::EndsWith("/empty: no Zarr group here"));
  WriteText(folder / "v2/.zgroup", R"({"zarr_format": 2})");
  const Status v2 = VerifyStore(folder / "v2").status();
  EXPECT_TRUE(absl::IsUnimplemented(v2));
  EXPECT_THAT(MessageOf(v2), testing::HasSubstr("not a store of Patchbay's image writer, and only "
                                                "those have digests to verify: it is Zarr v2"));
  if (TestData().empty()) GTEST_SKIP() << "no test data";
  EXPECT_TRUE(absl::IsUnimplemented(VerifyStore(TestData() + "/zarr/ome/simple_0.5").status()));
}

TEST(InspectStore, SaysWhatTheCommandPrints) {
  const ImageStoreSpec spec = SmallSpec();
  const TempFolder folder;
  const StoreRoots roots = WriteStore(folder / "s", spec, ImagesOf(spec));
  const auto json = InspectStore(folder / "s");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["digest"], roots.bytes.Hex());
  EXPECT_EQ((*json)["pixel_digest"], roots.pixels.Hex());
  EXPECT_EQ((*json)["source"], Json({{"kind", "aperio"}, {"bytes", 12345}}));
  EXPECT_EQ((*json)["levels"][1]["shape"], Json({3, 151, 135}));
  EXPECT_EQ((*json)["levels"][1]["chunk"], Json({3, 64, 64}));
  EXPECT_NEAR((*json)["levels"][1]["downsample"].get<double>(), 2.0, 0.01);
  EXPECT_EQ((*json)["mpp"], Json({0.5, 0.5}));
  EXPECT_GT((*json)["stored_bytes"].get<std::int64_t>(), 1000);
  if (TestData().empty()) GTEST_SKIP() << "no test data";
  const auto foreign = InspectStore(TestData() + "/zarr/ome/simple_0.4");
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  EXPECT_TRUE((*foreign)["digest"].is_null());
  EXPECT_EQ((*foreign)["mpp"], Json({0.004, 0.03}));
}

TEST(PublishStore, MovesACompleteStoreToItsNameAndRefusesATakenOne) {
  const TempFolder folder;
  WriteText(folder / "staging/s/zarr.json", "{}");
  WriteText(folder / "staging/s/0/c/0/0/0", "abc");
  ASSERT_TRUE(PublishStore(folder / "staging/s", folder / "s").ok());
  EXPECT_EQ(ReadText(folder / "s/0/c/0/0/0"), "abc");
  EXPECT_FALSE(std::filesystem::exists(folder / "staging/s"));
  WriteText(folder / "staging/s/zarr.json", "{}");
  const Status taken = PublishStore(folder / "staging/s", folder / "s");
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_TRUE(std::filesystem::exists(folder / "staging/s/zarr.json"));
  EXPECT_EQ(ReadText(folder / "s/0/c/0/0/0"), "abc");
  std::filesystem::create_directories(folder / "empty");
  EXPECT_TRUE(absl::IsAlreadyExists(PublishStore(folder / "staging/s", folder / "empty")));
  EXPECT_TRUE(absl::IsNotFound(PublishStore(folder / "none", folder / "t")));
  std::filesystem::create_symlink("/etc", folder / "staging/s/link");
  EXPECT_TRUE(absl::IsFailedPrecondition(PublishStore(folder / "staging/s", folder / "t")));
  EXPECT_FALSE(std::filesystem::exists(folder / "t"));
}

/// The rule written down again, slowly.
template <typename T>
TestImage SlowHalf(const TestImage& in) {
  TestImage out{in.dtype, (in.height + 1) / 2, (in.width + 1) / 2, in.channels, {}};
  out.bytes.resize(static_cast<std::size_t>(out.height * out.width * out.channels) * sizeof(T));
  const auto* from = reinterpret_cast<const T*>(in.bytes.data());
  auto* to = reinterpret_cast<T*>(out.bytes.data());
  for (std::int64_t y = 0; y < out.height; ++y) {
    for (std::int64_t x = 0; x < out.width; ++x) {
      for (std::int64_t c = 0; c < in.channels; ++c) {
        double sum = 0;
        int n = 0;
        for (std::int64_t yy = 2 * y; yy < std::min(2 * y + 2, in.height); ++yy) {
          for (std::int64_t xx = 2 * x; xx < std::min(2 * x + 2, in.width); ++xx, ++n) {
            sum += from[(yy * in.width + xx) * in.channels + c];
          }
        }
        to[(y * out.width + x) * in.channels + c] = static_cast<T>(std::floor(sum / n + 0.5));
      }
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
            ContiguousView<3>(out.bytes.data(), dtype, {out.height, out.width, channels});
        ASSERT_TRUE(DownsampleByTwo(in.View(), view).ok());
        const std::vector<std::byte> guard(16, std::byte{0x5a});
        EXPECT_TRUE(std::equal(guard.begin(), guard.end(), out.bytes.end() - 16));
        out.bytes.resize(expected.bytes.size());
        EXPECT_EQ(out.bytes, expected.bytes) << h << "x" << w << "x" << channels;
      }
    }
  }
}

TEST(Downsample, RefusesViewsThatDoNotFit) {
  const TestImage in = MakeImage(DType::kUint8, 8, 8, 3, 1);
  std::vector<std::byte> out(300);
  EXPECT_FALSE(
      DownsampleByTwo(in.View(), ContiguousView<3>(out.data(), DType::kUint8, {4, 5, 3})).ok());
  EXPECT_FALSE(
      DownsampleByTwo(in.View(), ContiguousView<3>(out.data(), DType::kUint16, {4, 4, 3})).ok());
  auto planar = ContiguousView<3>(out.data(), DType::kUint8, {4, 4, 3});
  planar.stride_bytes = {4, 1, 16};
  EXPECT_FALSE(DownsampleByTwo(in.View(), planar).ok());
}

}  // namespace
}  // namespace patchbay::zarr
