// Every single bit of an encoded chunk turned over: a codec with a checksum never passes other
// bytes off as the chunk's, and every stream ends where its bytes end.
#include <bzlib.h>
#include <zlib.h>
#include <zstd.h>

#include "runtime/format/zarr/codec/chunk_codec.h"
#include "tests/deflated.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

std::string ChunkBytes() {
  std::string out;
  for (std::uint64_t i = 0; i < 600; ++i) {
    out += static_cast<char>(i < 200 ? i / 9 : i < 400 ? Mix(i) : 255);
  }
  return out;
}

std::string Bz2(std::string raw) {
  std::string out(raw.size() * 2 + 600, '\0');
  auto size = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, raw.data(),
                                     static_cast<unsigned>(raw.size()), 1, 0, 0),
            BZ_OK);
  out.resize(size);
  return out;
}

std::string ZstdWithChecksum(const std::string& raw) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), raw.data(), raw.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::string WithSum(const std::string& raw, std::uint32_t sum) {
  return raw + std::string(reinterpret_cast<const char*>(&sum), sizeof sum);
}

struct Sample {
  const char* name;
  CodecKind kind;
  std::string encoded;
};

std::vector<Sample> Samples() {
  const std::string raw = ChunkBytes();
  const auto adler = static_cast<std::uint32_t>(
      adler32(1, reinterpret_cast<const Bytef*>(raw.data()), static_cast<uInt>(raw.size())));
  return {{"gzip", CodecKind::kGzip, Deflate(raw, 31)},
          {"zlib", CodecKind::kGzip, Deflate(raw, 15)},
          {"bz2", CodecKind::kBz2, Bz2(raw)},
          {"zstd", CodecKind::kZstd, ZstdWithChecksum(raw)},
          {"crc32c", CodecKind::kCrc32c, WithSum(raw, Crc32c(AsBytes(raw)))},
          {"adler32", CodecKind::kAdler32, WithSum(raw, adler)}};
}

/// The chunk, or why there is none. As DecodeChunkInto has it: of exactly its size.
StatusOr<std::string> Decode(CodecKind kind, const std::string& encoded) {
  Codec codec;
  codec.kind = kind;
  ChunkScratch scratch;
  std::vector<std::byte> buffer;
  const std::size_t size = ChunkBytes().size();
  PB_ASSIGN_OR_RETURN(const auto bytes,
                      DecodeStage(codec, AsBytes(encoded), size, scratch.state().blocks, buffer));
  if (bytes.size() != size) return absl::DataLossError("another size");
  return std::string(AsText(bytes));
}

TEST(BitFlips, ACodecWithAChecksumNeverGivesOtherBytes) {
  const std::string raw = ChunkBytes();
  for (const Sample& sample : Samples()) {
    ASSERT_EQ(*Decode(sample.kind, sample.encoded), raw) << sample.name;
    std::size_t refused = 0;
    for (std::size_t bit = 0; bit < 8 * sample.encoded.size(); ++bit) {
      std::string damaged = sample.encoded;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      const auto decoded = Decode(sample.kind, damaged);
      refused += decoded.ok() ? 0 : 1;
      if (decoded.ok()) {
        EXPECT_EQ(*decoded, raw) << sample.name << " bit " << bit;
      } else {
        EXPECT_TRUE(absl::IsDataLoss(decoded.status())) << sample.name << decoded.status();
      }
    }
    EXPECT_GT(refused, 7 * sample.encoded.size()) << sample.name;
  }
}

TEST(BitFlips, AStreamEndsWhereItsBytesEnd) {
  for (const Sample& sample : Samples()) {
    const std::string& good = sample.encoded;
    EXPECT_TRUE(absl::IsDataLoss(Decode(sample.kind, good + "x").status())) << sample.name;
    EXPECT_TRUE(absl::IsDataLoss(Decode(sample.kind, good + good).status())) << sample.name;
    for (std::size_t cut = 1; cut < good.size(); cut += 1 + cut / 3) {
      const auto decoded = Decode(sample.kind, good.substr(0, good.size() - cut));
      EXPECT_TRUE(absl::IsDataLoss(decoded.status())) << sample.name << " less " << cut;
    }
  }
}

}  // namespace
}  // namespace patchbay::zarr
