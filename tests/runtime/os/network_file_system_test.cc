#include "runtime/os/network_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patchbay {
namespace {

TEST(NetworkFileSystem, IsKnownByItsNumber) {
  EXPECT_EQ(NetworkFileSystemOf(0x6969), "NFS");
  EXPECT_EQ(NetworkFileSystemOf(0x0BD00BD0), "Lustre");
  EXPECT_EQ(NetworkFileSystemOf(0xEF53), "") << "ext4";
}

TEST(NetworkFileSystem, FolderOfThisMachineIsTaken) {
  EXPECT_TRUE(RefuseNetworkFileSystem(Folders::OfThisUser(), "/proc").ok());
  EXPECT_TRUE(absl::IsNotFound(RefuseNetworkFileSystem(Folders::OfThisUser(), "/no/such")));
}

}  // namespace
}  // namespace patchbay
