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

}  // namespace
}  // namespace patchbay::cli
