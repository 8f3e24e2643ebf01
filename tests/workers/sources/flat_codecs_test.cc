// The flat TIFF codecs refuse damaged input, and write nothing beyond the samples asked for.
#include "workers/sources/flat_codecs.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "runtime/core/hash.h"
#include "tests/workers/sources/slide_fixtures.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;

constexpr std::uint8_t kGuard = 0xA5;
constexpr int kClear = 256, kEnd = 257;

/// Decodes into `room` samples with guards behind them.
Status Decode(TiffCompression compression, const std::string& bytes, std::size_t room,
              std::size_t least, std::vector<std::uint8_t>* samples = nullptr) {
  std::vector<std::uint8_t> out(room + 64, kGuard);
  const Status status = DecodeFlat(compression, AsBytes(bytes), std::span(out).first(room), least);
  for (std::size_t i = room; i < out.size(); ++i) EXPECT_EQ(out[i], kGuard) << "written at " << i;
  out.resize(room);
  if (samples != nullptr) *samples = out;
  return status;
}

std::string Refusal(TiffCompression compression, const std::string& bytes, std::size_t room,
                    std::size_t least) {
  const Status status = Decode(compression, bytes, room, least);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  return std::string(MessageOf(status));
}

/// Codes as TIFF packs them: the first bit on top, one bit more from one code before it is needed.
std::string Lzw(const std::vector<int>& codes) {
  std::string bytes;
  std::uint64_t held = 0;
  int bits = 0, width = 9, next = 258;
  bool is_first = true;
  for (const int code : codes) {
    held = held << width | static_cast<std::uint64_t>(code);
    for (bits += width; bits >= 8; bits -= 8)
      bytes.push_back(static_cast<char>(held >> (bits - 8)));
    if (code == kClear) {
      width = 9;
      next = 258;
      is_first = true;
      continue;
    }
    if (!is_first && next < 4096) ++next;
    is_first = false;
    width = next + 1 >= 2048 ? 12 : next + 1 >= 1024 ? 11 : next + 1 >= 512 ? 10 : 9;
  }
  if (bits > 0) bytes.push_back(static_cast<char>(held << (8 - bits)));
  return bytes;
}

TEST(LzwDecoder, RefusesCodesThatNothingDefines) {
  const auto refusal = [](const std::vector<int>& codes) {
    return Refusal(TiffCompression::kLzw, Lzw(codes), 8, 8);
  };
  EXPECT_THAT(refusal({kClear, 258}), HasSubstr("code 258 before it is defined"));
  EXPECT_THAT(refusal({300}), HasSubstr("code 300 before it is defined"));
  EXPECT_THAT(refusal({kClear, 'A', 259}), HasSubstr("code 259 before it is defined"));
  EXPECT_THAT(refusal({kClear, 'A', kClear, 258}), HasSubstr("code 258 before it is defined"))
      << "what was defined before the clear code is gone";
}

TEST(LzwDecoder, EndsWithItsEndCodeAndItsRoom) {
  EXPECT_THAT(Refusal(TiffCompression::kLzw, Lzw({kClear, 'A', kEnd, 'B'}), 2, 2),
              HasSubstr("1 bytes"));
  // "AA" names itself: it fits by one sample less than its prefix says.
  EXPECT_THAT(Refusal(TiffCompression::kLzw, Lzw({kClear, 'A', 258, kEnd}), 2, 2),
              HasSubstr("more than 2 bytes"));
  std::vector<int> trailing = {kClear, 'A', 'B', kEnd};
  trailing.resize(20, 'x');
  EXPECT_THAT(Refusal(TiffCompression::kLzw, Lzw(trailing), 2, 2), HasSubstr("after the end"));
  EXPECT_THAT(Refusal(TiffCompression::kLzw, std::string("\0\1\2\3", 4), 8, 8),
              HasSubstr("TIFF 5.0"));
}

TEST(LzwDecoder, AFullTableStaysAsItIs) {
  std::vector<int> codes = {kClear};
  std::string expected;
  const auto literal = [&](int i) {
    codes.push_back(i * 7 % 251);
    expected.push_back(static_cast<char>(i * 7 % 251));
  };
  for (int i = 0; i < 3839; ++i) literal(i);  // defines 258 to 4095
  codes.push_back(4095);
  expected += expected.substr(expected.size() - 2);
  for (int i = 0; i < 100; ++i) literal(i);
  codes.push_back(4095);
  expected += expected.substr(3837, 2);
  codes.push_back(kEnd);
  std::vector<std::uint8_t> samples;
  const Status status =
      Decode(TiffCompression::kLzw, Lzw(codes), expected.size(), expected.size(), &samples);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(std::string(samples.begin(), samples.end()), expected);
}

TEST(PackBitsDecoder, RunsEndWithinBytesAndRoom) {
  const auto refusal = [](const std::string& bytes, std::size_t room) {
    return Refusal(TiffCompression::kPackBits, bytes, room, room);
  };
  EXPECT_THAT(refusal("\xFE"
                      "a",
                      2),
              HasSubstr("more than 2 bytes"));
  EXPECT_THAT(refusal("\x02"
                      "abc",
                      2),
              HasSubstr("more than 2 bytes"));
  EXPECT_THAT(refusal("\x02"
                      "ab",
                      3),
              HasSubstr("cut inside a run"));
  EXPECT_THAT(refusal("\xFE", 3), HasSubstr("cut inside a run"));
  EXPECT_THAT(refusal("\xFE"
                      "a",
                      4),
              HasSubstr("3 bytes of samples instead of 4"));
  std::vector<std::uint8_t> samples;
  ASSERT_TRUE(Decode(TiffCompression::kPackBits,
                     "\xFE"
                     "a"
                     "\x80"
                     "\x01"
                     "bc",
                     5, 5, &samples)
                  .ok());
  EXPECT_EQ(std::string(samples.begin(), samples.end()), "aaabc");
}

TEST(PackBitsDecoder, PaddingBehindTheSamplesIsNone) {
  const std::string content(
      "\xFF"
      "a",
      2);
  EXPECT_TRUE(Decode(TiffCompression::kPackBits, content + std::string(3, '\0'), 2, 2).ok());
  EXPECT_TRUE(Decode(TiffCompression::kPackBits, content + "\x80\x80", 2, 2).ok());
  EXPECT_TRUE(Decode(TiffCompression::kPackBits, content + std::string("\0\x80", 2), 2, 2).ok());
  EXPECT_THAT(Refusal(TiffCompression::kPackBits, content + std::string("\0b", 2), 2, 2),
              HasSubstr("more than 2 bytes"));
}

std::string StoredDeflate(const std::string& samples) {
  uLongf size = compressBound(samples.size());
  std::string bytes(size, '\0');
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(bytes.data()), &size,
                      reinterpret_cast<const Bytef*>(samples.data()), samples.size(), 0),
            Z_OK);
  bytes.resize(size);
  return bytes;
}

TEST(DeflateDecoder, SaysWhetherThereIsTooMuchOrTooLittle) {
  const std::string bytes = StoredDeflate(std::string(400, 's'));
  EXPECT_TRUE(Decode(TiffCompression::kDeflate, bytes, 400, 400).ok());
  EXPECT_TRUE(Decode(TiffCompression::kDeflate, bytes + std::string(9, '\0'), 400, 400).ok());
  EXPECT_THAT(Refusal(TiffCompression::kDeflate, bytes, 200, 200),
              HasSubstr("more than 200 bytes"));
  EXPECT_THAT(Refusal(TiffCompression::kDeflate, bytes.substr(0, 100), 400, 400),
              HasSubstr("cut short"));
  EXPECT_THAT(Refusal(TiffCompression::kDeflate, bytes + "x", 400, 400),
              HasSubstr("1 bytes after the end"));
  std::string checksum = bytes;
  checksum.back() = static_cast<char>(checksum.back() ^ 1);
  EXPECT_THAT(Refusal(TiffCompression::kDeflate, checksum, 400, 400),
              HasSubstr("incorrect data check"));
}

TEST(FlatCodecs, APieceHasTheLeastOrAllSamples) {
  for (const std::size_t stored : {8u, 12u}) {
    EXPECT_TRUE(
        Decode(TiffCompression::kDeflate, StoredDeflate(std::string(stored, 's')), 12, 8).ok())
        << stored;
  }
  for (const std::size_t stored : {7u, 9u, 11u}) {
    EXPECT_THAT(Refusal(TiffCompression::kDeflate, StoredDeflate(std::string(stored, 's')), 12, 8),
                HasSubstr(StrCat("a piece of ", stored, " bytes")));
  }
  EXPECT_TRUE(Decode(TiffCompression::kNone, "abcd", 4, 4).ok());
  EXPECT_THAT(Refusal(TiffCompression::kNone, "abc", 4, 4),
              HasSubstr("3 bytes of samples instead of 4"));
}

}  // namespace
}  // namespace patchbay::workers
