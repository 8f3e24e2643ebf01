// The folder and the header of batches that a command saves.
#include "runtime/cli/stream/batch_files.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/core/hash.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

TEST(NpyHeader, EndsAtTheNextMultipleOf64Bytes) {
  bool was_exact = false;
  TensorView tensor{};
  tensor.rank = 4;
  for (std::size_t axis = 0; axis < 4; ++axis) tensor.shape[axis] = 1;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    for (int digits = 1; digits < 18; ++digits) {
      tensor.shape[axis] *= 10;
      const auto header = NpyHeader(DType::kUint8, tensor);
      ASSERT_TRUE(header.ok()) << header.status();
      const std::size_t padding = header->size() - 2 - header->find_last_not_of(" \n");
      EXPECT_EQ(header->size() % 64, 0u);
      EXPECT_LT(padding, 64u);
      EXPECT_EQ(static_cast<unsigned char>((*header)[8]) + 256 * (*header)[9],
                static_cast<int>(header->size()) - 10);
      was_exact = was_exact || padding == 0;
    }
  }
  EXPECT_TRUE(was_exact);
}

TEST(NpyHeader, IsNoneForTypesThatNumPyIsNotToldOf) {
  TensorView tensor{};
  tensor.rank = 1;
  tensor.shape[0] = 4;
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32,
                            DType::kInt32, DType::kInt64}) {
    EXPECT_TRUE(NpyHeader(dtype, tensor).ok()) << NameOf(dtype);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(NpyHeader(DType::kFloat64, tensor).status()));
}

/// A folder of its own for a test, removed behind it.
class SavedBatches : public ::testing::Test {
 protected:
  ~SavedBatches() override { fs::remove_all(folder_); }

  Status Opens(const BatchFolderOptions& options) const {
    return BatchFolder::Open(folder_, options).status();
  }

  const fs::path folder_ = fs::temp_directory_path() / ("batches_" + Hex64(RandomU64()));
};

TEST_F(SavedBatches, GoToNoFolderThatHoldsBatchesUnlessForced) {
  EXPECT_TRUE(Opens({}).ok());
  std::ofstream(folder_ / "notes.npy");
  std::ofstream(folder_ / "epoch-notes.txt");
  EXPECT_TRUE(Opens({}).ok());
  std::ofstream(folder_ / "epoch-0000-batch-000007-image.npy");
  EXPECT_EQ(Opens({}).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Opens({.rank = 1, .world_size = 2}).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(Opens({.force = true}).ok());
}

TEST_F(SavedBatches, CarryTheRankWhereThereAreSeveral) {
  const auto name = [&](const BatchFolderOptions& options) {
    const auto folder = BatchFolder::Open(folder_, options);
    return folder.ok() ? folder->NameOf({2, 17}) : std::string(folder.status().message());
  };
  EXPECT_EQ(name({}), "epoch-0002-batch-000017");
  EXPECT_EQ(name({.rank = 0, .world_size = 2}), "epoch-0002-batch-000017-rank-0");
  EXPECT_EQ(name({.rank = 11, .world_size = 16}), "epoch-0002-batch-000017-rank-11");
}

TEST_F(SavedBatches, OfOtherRanksAreInNobodysWayAndOfTheSameRankAre) {
  EXPECT_TRUE(Opens({}).ok());
  std::ofstream(folder_ / "epoch-0000-batch-000007-rank-1-image.npy");
  EXPECT_TRUE(Opens({.rank = 0, .world_size = 12}).ok());
  EXPECT_TRUE(Opens({.rank = 11, .world_size = 12}).ok());
  EXPECT_EQ(Opens({.rank = 1, .world_size = 12}).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Opens({}).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(SavedBatches, AreOfOneStreamAtATimeButOfAllItsRanks) {
  constexpr auto kTaken = absl::StatusCode::kFailedPrecondition;
  {
    const auto one = BatchFolder::Open(folder_, {});
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ(Opens({}).code(), kTaken);
    EXPECT_EQ(Opens({.force = true}).code(), kTaken);
    EXPECT_EQ(Opens({.rank = 1, .world_size = 2}).code(), kTaken);
  }
  const auto rank = BatchFolder::Open(folder_, {.rank = 0, .world_size = 2});
  ASSERT_TRUE(rank.ok()) << rank.status();
  EXPECT_TRUE(Opens({.rank = 1, .world_size = 2}).ok());
  EXPECT_EQ(Opens({}).code(), kTaken);
}

BatchLayout Layout() {
  BatchLayout layout;
  layout.arrays = {{"image", DType::kFloat16, {3, 8, 8}}, {"ordinal", DType::kInt64, {}}};
  return layout;
}

/// Bytes of the files of so many patches: both headers have 128 bytes.
std::uint64_t Files(std::uint64_t patches) { return 2 * 128 + patches * (3 * 8 * 8 * 2 + 8); }

TEST(BytesOfBatches, CountTheShorterLastBatchOfEveryEpoch) {
  const StreamGeometry geometry{.patches_per_epoch = 10, .global_batch = 4};
  const auto bytes = [&](std::uint64_t batch, std::uint64_t batches) {
    return BytesOfBatches(Layout(), geometry, 0, {0, batch}, batches);
  };
  EXPECT_EQ(bytes(0, 2), 2 * Files(4));
  EXPECT_EQ(bytes(0, 3), 2 * Files(4) + Files(2));
  EXPECT_EQ(bytes(2, 1), Files(2));
  EXPECT_EQ(bytes(2, 5), 2 * Files(2) + 3 * Files(4));
  EXPECT_EQ(bytes(0, 3'000'000'000), 2'000'000'000 * Files(4) + 1'000'000'000 * Files(2));
}

TEST(BytesOfBatches, CountTheRanksPartAlone) {
  const StreamGeometry geometry{.patches_per_epoch = 9, .global_batch = 4, .world_size = 2};
  EXPECT_EQ(BytesOfBatches(Layout(), geometry, 1, {0, 0}, 3), 2 * Files(2) + Files(1));
  EXPECT_EQ(BytesOfBatches(Layout(), geometry, 0, {0, 0}, 3), 3 * Files(2)) << "none in the last";
}

TEST(CheckSaveFits, RefusesWhatIsMoreThanTheFreeSpaceAndNamesTheFlag) {
  const fs::path folder = fs::temp_directory_path() / ("batches_" + Hex64(RandomU64()));
  fs::create_directory(folder);
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  const std::uint64_t free_bytes = fs::space(folder).available;
  EXPECT_TRUE(CheckSaveFits(folder, 2, 1).ok());
  const Status refused = CheckSaveFits(folder, 2, free_bytes + kHuge);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  for (const char* word : {"2 batches take", "are free", "--save", "--batches"}) {
    EXPECT_NE(refused.message().find(word), std::string::npos) << word;
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace patchbay::cli
