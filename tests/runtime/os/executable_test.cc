// The folder that our processes start one another from.
#include "runtime/os/executable.h"

#include <gtest/gtest.h>

namespace patchbay {
namespace {

TEST(BinaryFolder, IsTheFolderOfAnInstalledProgram) {
  EXPECT_EQ(BinaryFolderOf("/opt/patchbay/bin/patchbay"), "/opt/patchbay/bin");
  EXPECT_EQ(BinaryFolderOf("/srv/lib/patchbay-worker"), "/srv/lib");
}

TEST(BinaryFolder, IsTheLaunchersFolderUnderABundlesLoader) {
  EXPECT_EQ(BinaryFolderOf("/opt/pb/lib/ld-linux-x86-64.so.2"), "/opt/pb/bin");
}

TEST(BinaryFolder, AProgramBesideOtherLibrariesIsNotALoader) {
  EXPECT_EQ(BinaryFolderOf("/opt/pb/lib/ld-tool"), "/opt/pb/lib");
  EXPECT_EQ(BinaryFolderOf("/opt/pb/sbin/ld-linux-x86-64.so.2"), "/opt/pb/sbin");
}

TEST(SiblingBinary, RefusesAProgramThatIsNotThere) {
  EXPECT_EQ(SiblingBinary("patchbay-no-such-program").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace patchbay
