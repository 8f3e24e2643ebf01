// Probes of disks leave nothing.
#include "runtime/os/disk_probe.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/core/hash.h"
#include "runtime/os/file.h"

namespace patchbay {
namespace {

namespace fs = std::filesystem;

TEST(DiskProbe, MeasuresAFolderAndAFileAndLeavesNothing) {
  std::string folder = (fs::temp_directory_path() / "probe-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const Folders allowed = Folders::OfThisUser();
  int pieces = 0;
  const auto count = [&] {
    ++pieces;
    return absl::OkStatus();
  };
  const auto rates = ProbeFolder(allowed, folder, count);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_GT(rates->write_bytes_per_s, 0);
  EXPECT_GT(rates->read_bytes_per_s, 0);
  EXPECT_GT(pieces, 2);
  EXPECT_TRUE(fs::is_empty(folder));

  const std::string file = folder + "/small";
  ASSERT_TRUE(ReplaceFile(allowed, file, AsBytes(std::string_view("less than a block"))).ok());
  const auto rate = ProbeFile(allowed, file, count);
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_GT(*rate, 0);
  EXPECT_TRUE(absl::IsNotFound(ProbeFile(allowed, folder + "/none", count).status()));
  EXPECT_TRUE(absl::IsCancelled(
      ProbeFolder(allowed, folder, [] { return absl::CancelledError("stop"); }).status()));
  fs::remove(file);
  EXPECT_TRUE(fs::is_empty(folder));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace patchbay
