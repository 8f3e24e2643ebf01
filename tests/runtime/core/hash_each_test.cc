// SHA-256 of many items at once equals that of each alone, for any number, lengths and rows.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/core/hash_blocks.h"

namespace patchbay {
namespace {

Digest Alone(const ByteRows& item) {
  Sha256 hash;
  for (std::size_t row = 0; row < item.rows; ++row) {
    hash.Update(
        std::span(item.first + static_cast<std::int64_t>(row) * item.stride_bytes, item.row_bytes));
  }
  return hash.Finish();
}

void ExpectEachAsAlone(const std::vector<ByteRows>& items) {
  for (const std::size_t side_by_side : {2, 16}) {
    if (side_by_side == 16 && !HasSixteenShaLanes()) continue;
    const std::vector<Digest> each = Sha256OfEach(items, side_by_side);
    ASSERT_EQ(each.size(), items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(each[i], Alone(items[i])) << side_by_side << " at once, item " << i << ": "
                                          << items[i].rows << " rows of " << items[i].row_bytes;
    }
  }
}

std::vector<std::byte> SomeBytes(std::size_t size) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

TEST(Sha256OfEach, HasEveryLengthAroundTheBlocks) {
  const std::vector<std::byte> bytes = SomeBytes(400);
  std::vector<ByteRows> items;
  for (std::size_t size = 0; size < 260; ++size) items.push_back({bytes.data() + size / 2, size});
  ExpectEachAsAlone(items);
}

TEST(Sha256OfEach, IsTheSameForAnyNumberOfItems) {
  const std::vector<std::byte> bytes = SomeBytes(40'000);
  for (std::size_t count = 1; count <= 50; ++count) {
    std::vector<ByteRows> items;
    for (std::size_t i = 0; i < count; ++i) items.push_back({bytes.data() + i, 1000 + 7 * i * i});
    ExpectEachAsAlone(items);
  }
}

TEST(Sha256OfEach, RowsAreHashedOneAfterAnother) {
  const std::vector<std::byte> bytes = SomeBytes(200'000);
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<ByteRows> items(1 + random() % 40);
    for (ByteRows& item : items) {
      item.row_bytes = random() % 5 == 0 ? 192 : random() % 400;
      item.rows = random() % 100;
      item.stride_bytes = static_cast<std::int64_t>(item.row_bytes + random() % 700);
      item.first = bytes.data() + random() % 1000;
    }
    ExpectEachAsAlone(items);
  }
}

TEST(Sha256OfEach, ItemsThatComeInPartsHaveTheDigestOfTheWhole) {
  const std::vector<std::byte> bytes = SomeBytes(100'000);
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::vector<std::size_t> sizes(30), at(30);
  for (std::size_t& size : sizes) size = random() % bytes.size();
  sizes[3] = 0;
  const auto digests = Sha256OfEach(sizes.size(), [&](std::size_t i) {
    const std::size_t begin = at[i];
    const std::size_t step = random() % 2 == 0 ? 4096 : 1 + random() % 300;
    at[i] = std::min(sizes[i], begin + step);
    return StatusOr<std::span<const std::byte>>(std::span(bytes).subspan(begin, at[i] - begin));
  });
  ASSERT_TRUE(digests.ok());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ((*digests)[i], Sha256Of(std::span(bytes).first(sizes[i]))) << sizes[i];
  }
}

TEST(Sha256OfEach, TakesAsManyAtOnceAsTheProcessorCan) {
  EXPECT_TRUE(Sha256SideBySide() == 2 || (Sha256SideBySide() == 16 && HasSixteenShaLanes()));
}

TEST(Sha256OfEach, AnErrorOfTheBytesIsTheAnswer) {
  const std::vector<std::byte> bytes = SomeBytes(1000);
  int asked = 0;
  const auto digests = Sha256OfEach(20, [&](std::size_t) -> StatusOr<std::span<const std::byte>> {
    if (++asked > 50) return absl::DataLossError("the disk is gone");
    return std::span<const std::byte>(bytes);
  });
  EXPECT_EQ(digests.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(asked, 51);
}

}  // namespace
}  // namespace patchbay
