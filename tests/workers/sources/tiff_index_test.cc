// TIFF directories byte by byte: every limit at its bound, every damage by its words.
#include "workers/sources/tiff_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "tests/runtime/format/zarr/bytes_in_memory.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;
using zarr::BytesInMemory;

std::string Little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

constexpr int kByte = 1, kAscii = 2, kShort = 3, kLong = 4, kRational = 5;

/// Fields of a directory: values of more than four bytes lie behind it.
class Fields {
 public:
  Fields& Add(int tag, int type, std::uint32_t count, const std::string& values) {
    fields_.push_back({tag, type, count, values});
    return *this;
  }
  Fields& Long(int tag, std::uint32_t value) { return Add(tag, kLong, 1, Little(value, 4)); }

  /// As it lies at `offset`, with the offset of the next directory.
  std::string At(std::size_t offset, std::size_t next) const {
    std::string table = Little(fields_.size(), 2), behind;
    const std::size_t end = offset + 2 + 12 * fields_.size() + 4;
    for (const Field& field : fields_) {
      table += Little(static_cast<std::uint64_t>(field.tag), 2) +
               Little(static_cast<std::uint64_t>(field.type), 2) + Little(field.count, 4);
      std::string value = field.values;
      if (value.size() > 4) {
        value = Little(end + behind.size(), 4);
        behind += field.values;
      }
      value.resize(4, '\0');
      table += value;
    }
    return table + Little(next, 4) + behind;
  }

 private:
  struct Field {
    int tag, type;
    std::uint32_t count;
    std::string values;
  };
  std::vector<Field> fields_;
};

constexpr char kHeader[] = {'I', 'I', 42, 0, 8, 0, 0, 0};

StatusOr<TiffIndex> Read(const std::string& bytes) {
  return TiffIndex::Read(std::make_shared<BytesInMemory>(bytes));
}
StatusOr<TiffIndex> Read(const Fields& fields) {
  return Read(std::string(kHeader, 8) + fields.At(8, 0));
}

template <typename T>
std::string RefusalOf(const StatusOr<T>& read) {
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  return std::string(MessageOf(read.status()));
}

Fields Image() { return Fields().Long(256, 64).Long(257, 10); }

TEST(TiffIndex, DirectoriesHaveLimits) {
  const auto chain = [](std::size_t directories, std::size_t entries) {
    std::string bytes(kHeader, 8);
    for (std::size_t i = 0; i < directories; ++i) {
      const std::size_t end = bytes.size() + 2 + 12 * entries + 4;
      Fields fields;
      for (std::size_t k = 0; k < entries; ++k) fields.Long(60'000, 1);
      bytes += fields.At(bytes.size(), i + 1 == directories ? 0 : end);
    }
    return Read(bytes);
  };
  ASSERT_TRUE(chain(kMaxTiffDirectories, 1).ok());
  EXPECT_THAT(RefusalOf(chain(kMaxTiffDirectories + 1, 1)),
              HasSubstr("more than 1024 directories"));
  EXPECT_TRUE(chain(1, kMaxTiffEntries).ok());
  EXPECT_THAT(RefusalOf(chain(1, kMaxTiffEntries + 1)), HasSubstr("4097 entries"));
  EXPECT_THAT(RefusalOf(chain(1, 0)), HasSubstr("with 0 entries"));
  EXPECT_TRUE(chain(kMaxTiffEntriesInAll / kMaxTiffEntries, kMaxTiffEntries).ok());
  EXPECT_THAT(RefusalOf(chain(kMaxTiffEntriesInAll / kMaxTiffEntries + 1, kMaxTiffEntries)),
              HasSubstr("more than 65536 entries"));
}

TEST(TiffIndex, ChainsEndWithinTheFile) {
  EXPECT_THAT(RefusalOf(Read(std::string("II\x2A\0\0\0\0\0", 8))), HasSubstr("no directories"));
  EXPECT_THAT(RefusalOf(Read(std::string(kHeader, 8) + Image().At(8, 8))), HasSubstr("loops back"));
  const std::string whole = std::string(kHeader, 8) + Image().At(8, 0);
  ASSERT_TRUE(Read(whole).ok());
  for (std::size_t cut = 8; cut < whole.size(); ++cut) {
    EXPECT_THAT(RefusalOf(Read(whole.substr(0, cut))), HasSubstr("past the end of the file"))
        << cut;
  }
  EXPECT_THAT(RefusalOf(Read(std::string(kHeader, 8) + Image().At(8, 0xFFFFFFF0u))),
              HasSubstr("past the end"));
}

TEST(TiffIndex, ABigTiffHasOffsetsOfEightBytes) {
  const auto header = [](int size, int reserved) {
    return std::string("II\x2B\0", 4) + Little(static_cast<std::uint64_t>(size), 2) +
           Little(static_cast<std::uint64_t>(reserved), 2) + Little(16, 8) + Little(1, 8) +
           Little(256, 2) + Little(kLong, 2) + Little(1, 8) + Little(7, 8) + Little(0, 8);
  };
  const auto good = Read(header(8, 0));
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->directories()[0].width, 7);
  EXPECT_THAT(RefusalOf(Read(header(4, 0))), HasSubstr("not 8 bytes"));
  EXPECT_THAT(RefusalOf(Read(header(8, 1))), HasSubstr("not 8 bytes"));
}

TEST(TiffIndex, ValuesAreOfTheirTypesAndThere) {
  EXPECT_THAT(RefusalOf(Read(Fields().Add(256, kRational, 1, Little(64, 4) + Little(1, 4)))),
              HasSubstr("tag 256 has type 5, not an integer"));
  EXPECT_THAT(RefusalOf(Read(Fields().Add(256, kLong, 0, ""))), HasSubstr("tag 256 has no value"));
  const auto bits = [](std::uint32_t samples) {
    std::string values;
    for (std::uint32_t i = 0; i < samples; ++i) values += Little(8, 2);
    return Read(Image().Add(258, kShort, samples, values));
  };
  ASSERT_TRUE(bits(64).ok());
  EXPECT_EQ(bits(64)->directories()[0].bits, 8u);
  EXPECT_THAT(RefusalOf(bits(65)), HasSubstr("65 values, at most 64"));
}

TEST(TiffIndex, AResolutionOfNothingIsNone) {
  const auto resolution = [](std::uint32_t numerator, std::uint32_t denominator) {
    const auto read =
        Read(Image().Add(282, kRational, 1, Little(numerator, 4) + Little(denominator, 4)));
    EXPECT_TRUE(read.ok()) << read.status();
    return read->directories()[0].x_resolution;
  };
  EXPECT_EQ(resolution(5, 2), 2.5);
  EXPECT_EQ(resolution(0, 1), std::nullopt);
  EXPECT_EQ(resolution(1, 0), std::nullopt);
  EXPECT_EQ(resolution(0, 0), std::nullopt);
}

TEST(TiffIndex, AStripIsNoHigherThanItsImage) {
  const auto read = Read(Image().Long(278, 0xFFFFFFFFu));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->directories()[0].piece_height, 10);
  EXPECT_EQ(Read(Image().Long(278, 4))->directories()[0].piece_height, 4);
}

StatusOr<TiffPieces> Pieces(const Fields& fields) {
  const auto read = Read(fields);
  EXPECT_TRUE(read.ok()) << read.status();
  return read->ReadPieces(read->directories()[0]);
}

TEST(TiffIndex, EveryPieceHasAnOffsetAndAByteCount) {
  const auto longs = [](std::uint32_t count) {
    std::string values;
    for (std::uint32_t i = 0; i < count; ++i) values += Little(100 + i, 4);
    return values;
  };
  const auto strips = [&](std::uint32_t offsets, std::uint32_t counts) {
    Fields fields = Image().Long(278, 4);  // three strips
    if (offsets > 0) fields.Add(273, kLong, offsets, longs(offsets));
    if (counts > 0) fields.Add(279, kLong, counts, longs(counts));
    return Pieces(fields);
  };
  const auto three = strips(3, 4);
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(three->size_bytes, (std::vector<std::uint64_t>{100, 101, 102}));
  EXPECT_THAT(RefusalOf(strips(2, 3)),
              HasSubstr("3 tiles or strips with 2 offsets and 3 byte counts"));
  EXPECT_THAT(RefusalOf(strips(3, 2)),
              HasSubstr("3 tiles or strips with 3 offsets and 2 byte counts"));
  EXPECT_THAT(RefusalOf(strips(3, 0)), HasSubstr("without tile or strip offsets"));
  EXPECT_THAT(RefusalOf(strips(0, 3)), HasSubstr("without tile or strip offsets"));
}

TEST(TiffIndex, PiecesOfAllPlanesCount) {
  const auto tiles = [](std::uint32_t planar) {
    return RefusalOf(Pieces(Fields()
                                .Long(256, 16 * 2048)
                                .Long(257, 16 * 1024)
                                .Long(277, 3)
                                .Long(284, planar)
                                .Long(322, 16)
                                .Long(323, 16)
                                .Long(324, 1)
                                .Long(325, 1)));
  };
  EXPECT_THAT(tiles(1), HasSubstr("an image of 2097152 tiles or strips with 1 offsets"));
  EXPECT_THAT(tiles(2), HasSubstr("2048 tiles or strips: at most 4194304"));
}

TEST(TiffIndex, TextEndsWithItsNulAndTablesHaveALimit) {
  const std::string text("made\0here", 9);
  const auto read = Read(Image().Add(270, kAscii, 9, text));
  EXPECT_EQ(*read->ReadDescription(read->directories()[0]), "made");
  const auto tables = [](std::size_t bytes) {
    const auto index =
        Read(Image().Add(347, kByte, static_cast<std::uint32_t>(bytes), std::string(bytes, 't')));
    EXPECT_TRUE(index.ok());
    return index->ReadJpegTables(index->directories()[0]);
  };
  EXPECT_EQ(tables(kMaxJpegTablesBytes)->size(), kMaxJpegTablesBytes);
  EXPECT_THAT(RefusalOf(tables(kMaxJpegTablesBytes + 1)), HasSubstr("JPEG tables of 262145 bytes"));
}

}  // namespace
}  // namespace patchbay::workers
