// Codecs and blosc frames by themselves: sizes, checksums and ends, each at its bound.
#include <cstring>

#include <blosc.h>
#include <bzlib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/blosc.h"
#include "runtime/format/zarr/codec/chunk_codec.h"

namespace patchbay::zarr {
namespace {

using testing::HasSubstr;

std::string Little(std::uint32_t value) {
  std::string text(4, '\0');
  std::memcpy(text.data(), &value, 4);
  return text;
}

class Stage {
 public:
  StatusOr<std::string> Decode(const Codec& codec, const std::string& in, std::size_t max_bytes) {
    // On the heap and of its exact size, so that a sanitizer sees every byte beyond.
    const std::vector<char> exact(in.begin(), in.end());
    PB_ASSIGN_OR_RETURN(const auto out, DecodeStage(codec, std::as_bytes(std::span(exact)),
                                                    max_bytes, scratch_.blocks, buffer_));
    return std::string(AsText(out));
  }
  std::string Refusal(CodecKind kind, const std::string& in, std::size_t max_bytes) {
    Codec codec;
    codec.kind = kind;
    const Status status = Decode(codec, in, max_bytes).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return std::string(MessageOf(status));
  }
  StatusOr<std::string> Decode(CodecKind kind, const std::string& in, std::size_t max_bytes) {
    Codec codec;
    codec.kind = kind;
    return Decode(codec, in, max_bytes);
  }
  ChunkScratch::State& scratch() { return scratch_; }

 private:
  ChunkScratch::State scratch_;
  std::vector<std::byte> buffer_;
};

TEST(CodecStage, Fletcher32IsThatOfNumcodecs) {
  std::string ramp;
  for (int i = 0; i < 1024; ++i) ramp.push_back(static_cast<char>(i));
  // numcodecs 0.16, Fletcher32().encode(): sums of 65535 stay 65535, an odd byte is a high one.
  const std::pair<std::string, std::uint32_t> known[] = {
      {"a", 0x61006100},
      {"ab", 0x61626162},
      {"abc", 0x25c5c462},
      {"abcdef", 0x50562a2d},
      {std::string(2, '\xFF'), 0xffffffff},
      {std::string(8, '\xFF'), 0xffffffff},
      {std::string("\xFF\xFF\0\1", 4), 0x00010001},
      {std::string("\0\1\xFF\xFE", 4), 0x0001ffff},
      {std::string(2000, '\xFF') + "x", 0x78007800},
      {std::string(2, '\0'), 0},
      {ramp, 0x151600ff}};
  for (const bool first : {false, true}) {
    Codec codec;
    codec.kind = CodecKind::kFletcher32;
    codec.checksum_first = first;  // it is always last
    for (const auto& [content, sum] : known) {
      Stage stage;
      const auto decoded = stage.Decode(codec, content + Little(sum), content.size());
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(*decoded, content);
      for (const std::uint32_t bit : {1u, 1u << 16, 1u << 31}) {
        EXPECT_TRUE(absl::IsDataLoss(
            stage.Decode(codec, content + Little(sum ^ bit), content.size()).status()));
      }
    }
  }
}

TEST(CodecStage, EveryBitOfAChecksumCounts) {
  const std::string content = "some bytes of a chunk";
  const std::uint32_t crc = Crc32c(AsBytes(content));
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    Stage stage;
    EXPECT_THAT(stage.Refusal(CodecKind::kCrc32c, content + Little(crc ^ 1u << bit), 100),
                HasSubstr("crc32c mismatch"));
  }
  Stage stage;
  EXPECT_EQ(*stage.Decode(CodecKind::kCrc32c, content + Little(crc), 100), content);
  for (const CodecKind kind : {CodecKind::kCrc32c, CodecKind::kAdler32, CodecKind::kFletcher32}) {
    EXPECT_THAT(stage.Refusal(kind, "abc", 100), HasSubstr("only 3 bytes"));
  }
}

std::string Gzip(const std::string& raw) {
  uLongf size = compressBound(raw.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size,
                     reinterpret_cast<const Bytef*>(raw.data()), raw.size()),
            Z_OK);
  return out.substr(0, size);
}

std::string Bzip2(std::string raw) {
  unsigned size = static_cast<unsigned>(raw.size()) + 1000;
  std::string out(size, '\0');
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, raw.data(),
                                     static_cast<unsigned>(raw.size()), 9, 0, 0),
            BZ_OK);
  return out.substr(0, size);
}

TEST(CodecStage, StreamsSayWhetherTheyAreTooLongOrCut) {
  const std::string raw = std::string(300, 'r') + "end";
  const std::pair<CodecKind, std::string> streams[] = {{CodecKind::kGzip, Gzip(raw)},
                                                       {CodecKind::kBz2, Bzip2(raw)}};
  for (const auto& [kind, stream] : streams) {
    Stage stage;
    EXPECT_EQ(*stage.Decode(kind, stream, raw.size()), raw);
    EXPECT_EQ(*stage.Decode(kind, stream + std::string(5, '\0'), raw.size()), raw) << "padding";
    EXPECT_THAT(stage.Refusal(kind, stream + "x", raw.size()),
                HasSubstr("1 bytes after the stream's end"));
    EXPECT_THAT(stage.Refusal(kind, stream, 100), HasSubstr("expands beyond the chunk"));
    EXPECT_THAT(stage.Refusal(kind, stream.substr(0, stream.size() - 6), 1000),
                HasSubstr("truncated"));
  }
}

std::string Lz4Block(const std::string& raw) {
  std::string out(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(raw.size()))), '\0');
  const int n = LZ4_compress_default(raw.data(), out.data(), static_cast<int>(raw.size()),
                                     static_cast<int>(out.size()));
  return out.substr(0, static_cast<std::size_t>(n));
}

TEST(CodecStage, Lz4HoldsWhatItClaims) {
  const std::string raw(100, 'l'), block = Lz4Block(raw);
  Stage stage;
  EXPECT_EQ(*stage.Decode(CodecKind::kLz4, Little(100) + block, 100), raw);
  EXPECT_THAT(stage.Refusal(CodecKind::kLz4, "abc", 100), HasSubstr("no size"));
  EXPECT_THAT(stage.Refusal(CodecKind::kLz4, Little(100) + block, 99),
              HasSubstr("claims 100 bytes of 99"));
  EXPECT_THAT(stage.Refusal(CodecKind::kLz4, Little(101) + block, 200), HasSubstr("corrupt block"));
  EXPECT_THAT(stage.Refusal(CodecKind::kLz4, Little(99) + block, 200), HasSubstr("corrupt block"));
}

/// A frame of one unshuffled block: `claimed` decoded bytes, encoded as `content`.
std::string Frame(int codec, std::uint32_t claimed, const std::string& content,
                  std::uint32_t block_bytes = 0) {
  const std::string flags = {'\2', '\1', static_cast<char>(codec << 5 | 0x10), '\1'};
  const std::string table = Little(20);
  const std::string body = table + Little(static_cast<std::uint32_t>(content.size())) + content;
  return flags + Little(claimed) + Little(block_bytes == 0 ? claimed : block_bytes) +
         Little(static_cast<std::uint32_t>(16 + body.size())) + body;
}

std::string ZstdOf(const std::string& raw) {
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), 3));
  return out;
}

std::string FrameRefusal(const std::string& frame, std::size_t expected) {
  Stage stage;
  const std::vector<char> exact(frame.begin(), frame.end());
  const auto parsed = BloscFrame::Parse(std::as_bytes(std::span(exact)), expected);
  std::vector<std::byte> out(expected);
  const Status status =
      parsed.ok() ? parsed->DecodeAll(stage.scratch().blocks, out.data()) : parsed.status();
  EXPECT_FALSE(status.ok());
  return std::string(MessageOf(status));
}

TEST(BloscFrameBytes, BlocksHoldAsManyBytesAsTheyShould) {
  constexpr int kLz4 = 1, kZstd = 4;
  const std::string raw(100, 'b');
  EXPECT_THAT(FrameRefusal(Frame(kZstd, 200, ZstdOf(raw)), 200),
              HasSubstr("a block of 100 bytes, not 200"));
  EXPECT_THAT(FrameRefusal(Frame(kLz4, 200, Lz4Block(raw)), 200), HasSubstr("a corrupt lz4 block"));
  EXPECT_THAT(FrameRefusal(Frame(kZstd, 200, ""), 200), HasSubstr("a block outside the frame"));
}

TEST(BloscFrameBytes, HeadersAreHeldAgainstTheBytes) {
  const std::string good = Frame(4, 100, ZstdOf(std::string(100, 'b')));
  Stage stage;
  EXPECT_EQ(*stage.Decode(CodecKind::kBlosc, good, 100), std::string(100, 'b'));
  EXPECT_THAT(stage.Refusal(CodecKind::kBlosc, good, 99),
              HasSubstr("holds 100 bytes, the chunk has 99"));
  const auto with = [&](std::size_t at, char value) {
    std::string frame = good;
    frame[at] = value;
    return frame;
  };
  EXPECT_THAT(FrameRefusal(with(0, 0), 100), HasSubstr("format version 0"));
  EXPECT_THAT(FrameRefusal(with(0, 3), 100), HasSubstr("format version 3"));
  EXPECT_THAT(FrameRefusal(with(3, 0), 100), HasSubstr("type size 0"));
  EXPECT_THAT(FrameRefusal(with(2, static_cast<char>(5 << 5 | 0x10)), 100),
              HasSubstr("inner codec 5"));
  EXPECT_THAT(FrameRefusal(good, 99), HasSubstr("holds 100 bytes, the chunk has 99"));
  EXPECT_THAT(FrameRefusal(good, 101), HasSubstr("holds 100 bytes, the chunk has 101"));
  EXPECT_THAT(FrameRefusal(good + "x", 100),
              HasSubstr(StrCat("states ", good.size(), " bytes, has ", good.size() + 1)));
  EXPECT_THAT(FrameRefusal(good.substr(0, good.size() - 1), 100), HasSubstr("states"));
  EXPECT_THAT(FrameRefusal(good.substr(0, 15), 100), HasSubstr("only 15 bytes"));
  EXPECT_THAT(FrameRefusal(Frame(4, 100, ZstdOf(std::string(100, 'b')), 1), 100),
              HasSubstr("cut inside its block table"));
}

TEST(BloscFrameBytes, StoredFramesHaveTheirExactSize) {
  const auto stored = [](std::uint32_t claimed, std::size_t bytes) {
    return std::string({'\2', '\1', '\x02', '\1'}) + Little(claimed) + Little(claimed) +
           Little(static_cast<std::uint32_t>(16 + bytes)) + std::string(bytes, 's');
  };
  Stage stage;
  EXPECT_EQ(*stage.Decode(CodecKind::kBlosc, stored(50, 50), 50), std::string(50, 's'));
  for (const std::size_t bytes : {49u, 51u, 60u}) {
    EXPECT_THAT(FrameRefusal(stored(50, bytes), 50), HasSubstr("stored bytes of another size"))
        << bytes;
  }
}

TEST(BloscFrameBytes, SplitAndShuffledBlocksReadAsBloscWritesThem) {
  for (const std::size_t type_bytes : {1u, 2u, 3u, 4u, 8u, 15u, 16u, 17u}) {
    for (const std::size_t elements : {127u, 128u, 129u, 400u}) {
      const std::size_t block = type_bytes * elements;
      std::string raw(3 * block + 5 * type_bytes + type_bytes / 2, '\0');
      for (std::size_t i = 0; i < raw.size(); ++i)
        raw[i] = static_cast<char>(i / 40 + i % type_bytes);
      for (int kind = 0; kind < 6; ++kind) {
        const char* name = kind % 2 == 0 ? "lz4" : "zstd";
        constexpr int kShuffles[] = {BLOSC_NOSHUFFLE, BLOSC_SHUFFLE, BLOSC_BITSHUFFLE};
        std::string frame(raw.size() + BLOSC_MAX_OVERHEAD, '\0');
        const int n = blosc_compress_ctx(5, kShuffles[kind / 2], type_bytes, raw.size(), raw.data(),
                                         frame.data(), frame.size(), name, block, 1);
        ASSERT_GT(n, 0);
        Stage stage;
        const auto decoded = stage.Decode(CodecKind::kBlosc,
                                          frame.substr(0, static_cast<std::size_t>(n)), raw.size());
        ASSERT_TRUE(decoded.ok()) << decoded.status() << " " << name << " " << type_bytes << " "
                                  << elements;
        EXPECT_TRUE(*decoded == raw) << name << " " << type_bytes << " " << elements;
      }
    }
  }
}

TEST(Unshuffle, AnyRunOfElementsIsPutTogetherAndNothingElseIsTouched) {
  constexpr std::size_t kElements = 150;
  for (const std::size_t size : {2u, 3u, 4u}) {
    std::vector<std::byte> planes(kElements * size);
    for (std::size_t i = 0; i < planes.size(); ++i)
      planes[i] = static_cast<std::byte>(i * 37 % 251);
    for (std::size_t count = 0; count <= 100; ++count) {
      const std::size_t first = count % 7;
      std::vector<std::byte> out(count * size + 1, std::byte{255});
      Unshuffle(planes.data(), kElements, size, first, count, out.data());
      for (std::size_t i = 0; i < count * size; ++i) {
        ASSERT_EQ(out[i], planes[i % size * kElements + first + i / size]) << size << " " << count;
      }
      ASSERT_EQ(out.back(), std::byte{255}) << size << " " << count;
    }
  }
}

TEST(Unshuffle, ABoxIsPutTogetherInPlaceAndNothingElseIsTouched) {
  constexpr std::int64_t kSlices = 3, kRows = 2, kColumns = 70, kGap = 3;
  constexpr auto kElements = static_cast<std::size_t>(kSlices * kRows * kColumns);
  for (const std::size_t size : {2u, 3u, 4u}) {
    const auto bytes = static_cast<std::int64_t>(size);
    std::vector<std::byte> planes(kElements * size);
    for (std::size_t i = 0; i < planes.size(); ++i) planes[i] = static_cast<std::byte>(i % 241);
    for (const std::int64_t count : {1, 7, 8, 31, 32, 33, 64, 66}) {
      const std::int64_t row = count + kGap;  // row of the destination, in elements
      const CopyPlan plan{3,
                          size,
                          {kSlices, kRows, count},
                          {kRows * kColumns * bytes, kColumns * bytes, bytes},
                          {kRows * row * bytes, row * bytes, bytes}};
      std::vector<std::byte> out(static_cast<std::size_t>(kSlices * kRows * row) * size,
                                 std::byte{255});
      constexpr std::size_t kFirst = 4;
      UnshuffleBox(plan, planes.data(), kElements, kFirst, out.data());
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto element = static_cast<std::int64_t>(i / size);
        const auto from =
            kFirst + static_cast<std::size_t>(element / row * kColumns + element % row);
        const std::byte expected =
            element % row < count ? planes[i % size * kElements + from] : std::byte{255};
        ASSERT_EQ(out[i], expected) << size << " bytes, lines of " << count << ", byte " << i;
      }
    }
  }
}

/// A chunk of 100 bytes under one codec, or none.
Status DecodeChunk(const std::vector<Codec>& codecs, const std::string& stored) {
  ArrayMetadata array;
  array.shape = array.chunk_shape = array.shard_shape = {100};
  array.chain.order = {0};
  array.chain.codecs = codecs;
  std::vector<std::byte> out(100);
  ChunkTarget target;
  target.shape[0] = 100;
  target.stride_bytes[0] = 1;
  target.to = out.data();
  ChunkScratch::State scratch;
  return DecodeChunkInto(array, AsBytes(stored), target, scratch);
}

TEST(ChunkCodec, AChunkDecodesToItsExactSize) {
  Codec zstd;
  zstd.kind = CodecKind::kZstd;
  EXPECT_TRUE(DecodeChunk({zstd}, ZstdOf(std::string(100, 'z'))).ok());
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk({zstd}, ZstdOf(std::string(99, 'z')))));
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk({zstd}, ZstdOf(std::string(101, 'z')))));
  EXPECT_TRUE(DecodeChunk({}, std::string(100, 'p')).ok());
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk({}, std::string(99, 'p'))));
  EXPECT_TRUE(absl::IsDataLoss(DecodeChunk({}, std::string(101, 'p'))));
}

}  // namespace
}  // namespace patchbay::zarr
