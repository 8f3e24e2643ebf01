// Seeded mutations of metadata and shards: whatever comes out is a value or a status.
#include <fstream>

#include "runtime/format/zarr/ngff.h"
#include "runtime/format/zarr/verify.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"
#include "workers/sources/zarr_source.h"

namespace patchbay::zarr {
namespace {

constexpr int kRounds = 3000;

/// A document with a few of its bytes replaced, doubled or cut; the pieces favour JSON's own.
std::string Mutate(std::string text, std::uint64_t& seed) {
  static constexpr std::string_view kPieces[] = {
      "0", "-1",       "9223372036854775807", "1e308", "null",       "[]",     "{}", "\"\"", "true",
      "3", "\"zstd\"", "\"blosc\"",           "65536", "4294967296", "[0,0,0]"};
  const std::uint64_t edits = 1 + Mix(++seed) % 3;
  for (std::uint64_t e = 0; e < edits && !text.empty(); ++e) {
    const std::size_t at = Mix(++seed) % text.size();
    const std::uint64_t kind = Mix(++seed) % 5;
    if (kind == 0) text[at] = static_cast<char>(Mix(++seed));
    if (kind == 1) text.erase(at, 1 + Mix(++seed) % 8);
    if (kind == 2) text.insert(at, kPieces[Mix(++seed) % std::size(kPieces)]);
    if (kind == 3) {  // replace a number
      std::size_t from = text.find_first_of("0123456789", at);
      if (from == std::string::npos) continue;
      const std::size_t to = text.find_first_not_of("0123456789", from);
      text.replace(from, to - from, kPieces[Mix(++seed) % std::size(kPieces)]);
    }
    if (kind == 4) text.insert(at, text.substr(at, Mix(++seed) % 20));
  }
  return text;
}

ImageStoreSpec SmallSpec(StoreCodec codec) {
  ImageStoreSpec spec;
  spec.settings.codec = codec;
  spec.settings.chunk = Flat(32, 32);
  spec.settings.shard = Flat(64, 64);
  spec.settings.blosc_block_bytes = 4096;
  spec.levels = {Flat(100, 90), Flat(50, 45)};
  return spec;
}

std::vector<TestImage> ImagesOf(const ImageStoreSpec& spec) {
  return {MakeImage(DType::kUint8, spec.levels[0].y, spec.levels[0].x, 3, 3),
          MakeImage(DType::kUint8, spec.levels[1].y, spec.levels[1].x, 3, 4)};
}

void ReadIfSmall(const std::string& store) {
  const auto image = workers::OpenZarrImage(Folders::OfThisUser(), store);
  if (!image.ok()) return;
  workers::EncodedPatch patch;
  const auto scratch = (*image)->MakeScratch();
  const auto& layout = (*image)->layout();
  if (layout.channels > 16) return;
  std::vector<std::byte> out(static_cast<std::size_t>(40 * 40 * layout.channels) *
                             SizeOf(layout.dtype));
  const auto view = ContiguousView<3>(out.data(), layout.dtype, {40, 40, layout.channels});
  for (int level = 0; level < static_cast<int>(layout.levels.size()); ++level) {
    if (!(*image)->Fetch(level, Box2D(20, 15, 40, 40), patch).ok()) continue;
    (void)(*image)->Decode(patch, view, 0, *scratch);
  }
}

TEST(ZarrFuzz, MutatedMetadataOfOurStoreNeverCrashes) {
  const TempFolder folder;
  const ImageStoreSpec spec = SmallSpec(StoreCodec::kBloscZstd);
  WriteStore(folder / "s", spec, ImagesOf(spec));
  const std::string root = ReadText(folder / "s/zarr.json");
  const std::string array = ReadText(folder / "s/0/zarr.json");
  std::uint64_t seed = 0x5eed0001;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const bool of_array = round % 2 == 0;
    const std::string mutated = Mutate(of_array ? array : root, seed);
    const auto document = ParseJson(mutated, "fuzz");
    if (!document.ok()) continue;
    if (of_array) {
      const auto parsed = ParseArrayV3(*document, "fuzz");
      if (parsed.ok()) {
        EXPECT_LE(parsed->ChunkBytes(), kMaxChunkBytes);
        EXPECT_LE(parsed->ChunksPerShard(), kMaxChunksPerShard);
      }
    } else if (document->is_object() && document->contains("attributes")) {
      (void)ParseMultiscales((*document)["attributes"], "fuzz");
    }
    if (round % 8 >= 2) continue;  // the rest of the way for some of them: files are slower
    const std::string file = folder / (of_array ? "s/0/zarr.json" : "s/zarr.json");
    { std::ofstream(file) << mutated; }
    ReadIfSmall(folder / "s");
    { std::ofstream(file) << (of_array ? array : root); }
  }
}

TEST(ZarrFuzz, MutatedV2MetadataNeverCrashes) {
  const std::string good =
      R"({"zarr_format":2,"shape":[100,100],"chunks":[10,10],"dtype":"<i2","compressor":)"
      R"({"id":"blosc","cname":"lz4","clevel":5,"shuffle":1},"filters":[{"id":"delta",)"
      R"("dtype":"<i2"},{"id":"shuffle","elementsize":2}],"order":"F","fill_value":-3,)"
      R"("dimension_separator":"/"})";
  std::uint64_t seed = 0x5eed0002;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto document = ParseJson(Mutate(good, seed), "fuzz");
    if (!document.ok()) continue;
    const auto parsed = ParseArrayV2(*document, Json::object(), "fuzz");
    if (!parsed.ok()) continue;
    EXPECT_LE(parsed->ChunkBytes(), kMaxChunkBytes);
  }
}

class ShardFuzz : public testing::TestWithParam<StoreCodec> {};

TEST_P(ShardFuzz, MutatedChunksWithRightChecksumsNeverCrashTheDecoders) {
  const TempFolder folder;
  const ImageStoreSpec spec = SmallSpec(GetParam());
  WriteStore(folder / "s", spec, ImagesOf(spec));
  const std::string file = folder / "s/0/c/0/0/0";
  const std::string good = ReadText(file);
  const std::size_t index_at = good.size() - (4 * 16 + 4);
  std::uint64_t seed = 0x5eed0003 + static_cast<std::uint64_t>(GetParam());
  for (int round = 0; round < kRounds / 4; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::string bad = good;
    for (std::uint64_t e = 0; e <= Mix(++seed) % 4; ++e) {
      // Headers and block tables more often than payload.
      const std::size_t within = Mix(++seed) % 2 == 0 ? 64 : index_at;
      const std::size_t at = Mix(++seed) % std::min(within, index_at);
      bad[at] = static_cast<char>(Mix(++seed));
    }
    for (int chunk = 0; chunk < 4;
         ++chunk) {  // so that the codec sees the damage, not the checksum
      std::uint64_t entry[2];
      std::memcpy(entry, bad.data() + index_at + 16 * static_cast<std::size_t>(chunk), 16);
      if (entry[0] == ~std::uint64_t{0}) continue;
      const std::uint32_t crc = Crc32c(AsBytes(bad).subspan(entry[0], entry[1] - 4));
      std::memcpy(bad.data() + entry[0] + entry[1] - 4, &crc, 4);
    }
    { std::ofstream(file) << bad; }
    ReadIfSmall(folder / "s");
  }
}

TEST_P(ShardFuzz, MutatedIndexesAreReportedByVerify) {
  const TempFolder folder;
  const ImageStoreSpec spec = SmallSpec(GetParam());
  WriteStore(folder / "s", spec, ImagesOf(spec));
  const std::string file = folder / "s/0/c/0/0/0";
  const std::string good = ReadText(file);
  const std::size_t index_at = good.size() - (4 * 16 + 4);
  std::uint64_t seed = 0x5eed0004;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::string bad = good;
    const std::size_t at = index_at + Mix(++seed) % 64;
    bad[at] ^= static_cast<char>(1 + Mix(++seed) % 255);
    const std::uint32_t crc = Crc32c(AsBytes(bad).subspan(index_at, 64));
    std::memcpy(bad.data() + bad.size() - 4, &crc, 4);
    { std::ofstream(file) << bad; }
    const auto report = VerifyStore(Folders::OfThisUser(), folder / "s");
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->Clean());
  }
}

TEST(ZarrFuzz, MutatedListsOfShardFilesAreReportedByVerify) {
  const TempFolder folder;
  const ImageStoreSpec spec = SmallSpec(StoreCodec::kBloscLz4);
  WriteStore(folder / "s", spec, ImagesOf(spec));
  const std::string good = ReadText(folder / "s/zarr.json");
  const Json document = *ParseJson(good, "fuzz");
  const std::size_t begin = good.find("\"shards\""), end = good.rfind("\"source");
  ASSERT_NE(begin, std::string::npos);
  std::uint64_t seed = 0x5eed0005;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const std::string bad = good.substr(0, begin) +
                            Mutate(good.substr(begin, std::min(end, good.size()) - begin), seed) +
                            good.substr(std::min(end, good.size()));
    const auto parsed = ParseJson(bad, "fuzz");
    if (!parsed.ok() || *parsed == document) continue;
    { std::ofstream(folder / "s/zarr.json") << bad; }
    const auto report = VerifyStore(Folders::OfThisUser(), folder / "s");
    EXPECT_FALSE(report.ok() && report->Clean());
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, ShardFuzz,
                         testing::Values(StoreCodec::kBloscZstd, StoreCodec::kBloscLz4,
                                         StoreCodec::kZstd));

}  // namespace
}  // namespace patchbay::zarr
