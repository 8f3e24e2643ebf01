// The folder and the header of batches that a command saves.
#include "runtime/cli/batch_files.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/base/hash.h"

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

TEST(PrepareBatchFolder, TakesNoFolderThatHoldsBatchesUnlessForced) {
  const fs::path folder = fs::temp_directory_path() / ("batches_" + Hex64(RandomU64()));
  EXPECT_TRUE(PrepareBatchFolder(folder, false).ok());
  std::ofstream(folder / "notes.npy");
  std::ofstream(folder / "epoch-notes.txt");
  EXPECT_TRUE(PrepareBatchFolder(folder, false).ok());
  std::ofstream(folder / "epoch-0000-batch-000007-image.npy");
  EXPECT_EQ(PrepareBatchFolder(folder, false).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(PrepareBatchFolder(folder, true).ok());
  fs::remove_all(folder);
}

BatchLayout Layout() {
  BatchLayout layout;
  layout.arrays = {{"image", DType::kFloat16, {3, 8, 8}}, {"ordinal", DType::kInt64, {}}};
  return layout;
}

/// Of files of so many patches: both headers have 128 bytes.
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
