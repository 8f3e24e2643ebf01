// Operations confined to folders, with links inside them and links that appear during the
// operation.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"

namespace patchbay {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;

/// read/ and write/ may be used, secret/ may not; each has a file "f" that says its name.
class FoldersTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(fs::temp_directory_path()) / ("folders_" + Hex64(RandomU64()));
    for (const char* name : {"read/below", "write/below", "secret/below"}) {
      fs::create_directories(root_ / name);
      std::ofstream(root_ / name / "f") << name;
    }
    allowed_ = Folders({{At("read")}, {At("write")}});
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string At(const std::string& name) const { return (root_ / name).string(); }
  void Link(const std::string& target, const std::string& name) const {
    fs::create_symlink(target, root_ / name);
  }
  /// The content of a file, as far as the rights go.
  StatusOr<std::string> Read(const std::string& name) const {
    return ReadFile(allowed_, At(name), 100);
  }
  StatusCode ReadCode(const std::string& name) const { return Read(name).status().code(); }
  StatusCode WriteCode(const std::string& name) const {
    return ReplaceFile(allowed_, At(name), AsBytes("new")).code();
  }
  bool IsUntouched() const {
    std::size_t entries = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "secret")) {
      entries += entry.exists() ? 1 : 0;
    }
    return entries == 2;
  }

  fs::path root_;
  Folders allowed_{Folders::Roots{}};
};

TEST_F(FoldersTest, WhatLiesInAFolderIsReadAndALinkThatLeadsOutIsNot) {
  EXPECT_EQ(*Read("read/below/f"), "read/below");
  Link(At("secret/below"), "read/absolute");
  Link("../secret/below", "read/relative");
  Link("../../secret/below/f", "read/below/file");
  Link("/proc/self/root" + At("secret/below"), "read/magic");
  for (const char* name : {"read/absolute/f", "read/relative/f", "read/below/file", "read/magic/f",
                           "read/../secret/below/f"}) {
    const auto text = Read(name);
    ASSERT_EQ(text.status().code(), StatusCode::kPermissionDenied) << name;
    EXPECT_NE(MessageOf(text.status()).find(At("read")), std::string::npos) << text.status();
  }
}

TEST_F(FoldersTest, ALinkThatStaysInTheFolderIsFollowed) {
  Link("below", "read/inner");
  EXPECT_EQ(*Read("read/inner/f"), "read/below");
  Link(At("read/below"), "read/absolute");  // absolute ones never
  EXPECT_EQ(ReadCode("read/absolute/f"), StatusCode::kPermissionDenied);
}

TEST_F(FoldersTest, WhatIsNotThereIsNotFoundAndOtherPathsAreRefused) {
  EXPECT_EQ(ReadCode("read/nothing"), StatusCode::kNotFound);
  EXPECT_EQ(ReadCode("read/below/f/deeper"), StatusCode::kNotFound);
  for (const std::string& path : {At("secret/below/f"), At("reader"), std::string("read/below/f"),
                                  std::string("/proc/self/status")}) {
    EXPECT_TRUE(absl::IsPermissionDenied(OpenFile(allowed_, path, O_RDONLY).status())) << path;
  }
  EXPECT_TRUE(OpenFile(Folders::OfThisProcess(), "/proc/self/status", O_RDONLY).ok());
}

TEST_F(FoldersTest, WritingStaysInTheFoldersToWrite) {
  EXPECT_EQ(WriteCode("write/below/new"), StatusCode::kOk);
  EXPECT_EQ(*Read("write/below/new"), "new");  // a job reads what it wrote
  EXPECT_EQ(WriteCode("read/below/new"), StatusCode::kPermissionDenied);
  Link(At("secret"), "write/out");
  EXPECT_EQ(WriteCode("write/out/new"), StatusCode::kPermissionDenied);
  const auto denied = [](const Status& status) { return absl::IsPermissionDenied(status); };
  EXPECT_TRUE(denied(MakeDirectories(allowed_, At("write/out/a/b"))));
  EXPECT_TRUE(denied(MakeDirectories(allowed_, At("write/out"))));
  EXPECT_TRUE(denied(MakeDirectory(allowed_, At("write/out/a"))));
  EXPECT_TRUE(denied(RenameFile(allowed_, At("write/below/new"), At("write/out/new"))));
  EXPECT_TRUE(denied(RenameUnlessTaken(allowed_, At("write/below/new"), At("write/out/new"))));
  EXPECT_TRUE(denied(RenameFile(allowed_, At("write/out/below"), At("write/taken"))));
  EXPECT_TRUE(denied(RemoveFile(allowed_, At("write/out/below/f"))));
  EXPECT_TRUE(denied(RemoveTree(allowed_, At("write/out/below"))));
  EXPECT_TRUE(denied(SyncDirectory(allowed_, At("write/out"))));
  EXPECT_TRUE(IsUntouched());
}

TEST_F(FoldersTest, TreesAreMadeMovedAndRemovedWithTheirLinks) {
  EXPECT_TRUE(MakeDirectories(allowed_, At("write/a/b/c")).ok());
  EXPECT_TRUE(MakeDirectories(allowed_, At("write/a/b/c")).ok());
  EXPECT_EQ(MakeDirectory(allowed_, At("write/a")).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(RenameUnlessTaken(allowed_, At("write/a"), At("write/below")).code(),
            StatusCode::kAlreadyExists);
  EXPECT_TRUE(RenameUnlessTaken(allowed_, At("write/a"), At("write/z")).ok());
  Link(At("secret"), "write/z/b/out");
  EXPECT_FALSE(RemoveFile(allowed_, At("write/z")).ok());  // not empty
  EXPECT_TRUE(RemoveTree(allowed_, At("write/z")).ok());
  EXPECT_FALSE(fs::exists(root_ / "write/z"));
  EXPECT_TRUE(RemoveTree(allowed_, At("write/z")).ok());
  EXPECT_TRUE(RemoveFile(allowed_, At("write/z")).ok());
  EXPECT_TRUE(IsUntouched());
}

TEST_F(FoldersTest, AThreadHasNoRightsButThoseItIsGiven) {
  static_assert(!std::is_default_constructible_v<Folders>, "forgotten rights compile");
  const Folders none(Folders::Roots{});
  Link(At("secret/below"), "read/out");
  std::thread([&] {
    for (const char* name : {"read/below/f", "write/below/f", "secret/below/f"}) {
      EXPECT_TRUE(absl::IsPermissionDenied(ReadFile(none, At(name), 100).status())) << name;
    }
    EXPECT_TRUE(absl::IsPermissionDenied(ReplaceFile(none, At("write/below/f"), {})));
    EXPECT_TRUE(ReadFile(allowed_, At("read/below/f"), 100).ok());
    EXPECT_FALSE(ReadFile(allowed_, At("read/out/f"), 100).ok());
    EXPECT_TRUE(ReadFile(Folders::OfThisUser(), At("read/out/f"), 100).ok());
  }).join();
}

TEST_F(FoldersTest, ACopyKeepsItsRightsWhateverBecomesOfTheFirst) {
  auto first = std::make_unique<Folders>(Folders::Roots{{At("read")}, {}});
  const Folders copy = *first;
  first.reset();
  EXPECT_TRUE(ReadFile(copy, At("read/below/f"), 100).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(ReadFile(copy, At("write/below/f"), 100).status()));
}

TEST_F(FoldersTest, AValueThatWasMovedFromConfinesAsBefore) {
  Folders from({{At("read")}, {}});
  const Folders to = std::move(from);
  for (const Folders& each : {from, to}) {
    EXPECT_TRUE(ReadFile(each, At("read/below/f"), 100).ok());
    EXPECT_TRUE(absl::IsPermissionDenied(ReadFile(each, At("secret/below/f"), 100).status()));
  }
}

TEST_F(FoldersTest, TheOutermostFolderAroundAPathConfinesIt) {
  const Folders folders({{"/a/b", "/a", "/w/in"}, {"/w", "/"}});
  EXPECT_EQ(*folders.Around("/a/b/c", false), "/a");
  EXPECT_EQ(*folders.Around("/ab", false), "");           // "/" confines nothing
  EXPECT_EQ(*folders.Around("/w/in/x", false), "/w/in");  // reading goes by what may be read
  EXPECT_EQ(*folders.Around("/w/in/x", true), "");
  for (const bool is_write : {false, true}) {
    EXPECT_TRUE(
        absl::IsPermissionDenied(Folders(Folders::Roots{}).Around("/a", is_write).status()));
    EXPECT_EQ(*Folders::OfThisUser().Around("a", is_write), "");
  }
}

TEST_F(FoldersTest, NamesAreLookedAtAndListedWithinTheFolders) {
  Link(At("secret/below"), "read/out");
  Link("below/f", "read/in");
  Link(At("write/below"), "read/absolute");
  EXPECT_TRUE(IsFolder(allowed_, At("read/below")));
  EXPECT_TRUE(IsRegularFile(allowed_, At("read/absolute/f")));
  EXPECT_TRUE(Exists(allowed_, At("read/absolute/f"), false));
  EXPECT_TRUE(IsRegularFile(allowed_, At("read/in")));
  EXPECT_EQ(*SizeOf(allowed_, At("read/below/f")), 10u);
  EXPECT_FALSE(SizeOf(allowed_, At("read/below")).ok());
  EXPECT_TRUE(Exists(allowed_, At("read/out"), false));
  EXPECT_TRUE(Exists(Folders::OfThisUser(), At("read/out/f")));
  EXPECT_EQ(*ListFolder(allowed_, At("read")),
            (std::vector<std::string>{"absolute", "below", "in", "out"}));
  EXPECT_EQ(ListFolder(allowed_, At("read"), 1)->size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(ListFolder(allowed_, At("read/nothing")).status()));
  for (const char* name : {"secret", "secret/below/f", "read/out", "read/out/f", "read/out/none"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(StatOf(allowed_, At(name)).status())) << name;
    EXPECT_TRUE(absl::IsPermissionDenied(ListFolder(allowed_, At(name)).status())) << name;
    EXPECT_FALSE(Exists(allowed_, At(name))) << name;
    EXPECT_FALSE(IdentityAt(allowed_, At(name)).has_value()) << name;
  }
}

TEST_F(FoldersTest, ATreeIsWalkedWithinTheFolders) {
  Link("below", "read/folder");
  Link("below/f", "read/file");
  Link("nowhere", "read/dangling");
  const auto walk = [&](Links links, const std::string& folder = "read") {
    std::set<std::string> seen;
    const auto visit = [&](const FolderEntry& entry) -> StatusOr<bool> {
      seen.insert(StrCat(entry.path.substr(At(folder).size() + 1), entry.is_file() ? "" : "/"));
      return true;
    };
    const Status walked = WalkTree(allowed_, At(folder), links, visit);
    const std::vector<std::string> names(seen.begin(), seen.end());
    return walked.ok() ? StrJoin(names, " ") : std::string(absl::StatusCodeToString(walked.code()));
  };
  EXPECT_EQ(walk(Links::kKept), "below/ below/f dangling/ file/ folder/");
  EXPECT_EQ(walk(Links::kOfFiles), "below/ below/f dangling/ file folder/");
  EXPECT_EQ(walk(Links::kAllFollowed), "below/ below/f dangling/ file folder/ folder/f");
  EXPECT_EQ(walk(Links::kKept, "read/nothing"), "NOT_FOUND");
  EXPECT_EQ(walk(Links::kKept, "secret"), "PERMISSION_DENIED");
  Link(At("secret/below"), "read/out");
  EXPECT_EQ(walk(Links::kKept), "below/ below/f dangling/ file/ folder/ out/");
  EXPECT_EQ(walk(Links::kOfFiles), "PERMISSION_DENIED");
}

/// A folder and a link to another one change places as fast as they can.
TEST_F(FoldersTest, AnAttackerWhoSwapsAFolderForALinkNeverGetsWhatIsOutside) {
  Link(At("secret/below"), "read/z");
  std::atomic<bool> stop{false};
  std::thread attacker([&] {
    while (!stop) {
      renameat2(AT_FDCWD, At("read/z").c_str(), AT_FDCWD, At("read/below").c_str(),
                RENAME_EXCHANGE);
    }
  });
  int read = 0, refused = 0;
  for (int i = 0; i < 200'000 && (i < 2000 || read == 0 || refused == 0); ++i) {
    const auto text = Read("read/below/f");
    if (text.ok()) EXPECT_EQ(*text, "read/below");
    ++(text.ok() ? read : refused);
  }
  stop = true;
  attacker.join();
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

/// Makes openat2 fail as an old kernel or a container's filter does.
bool ForbidOpenat2(unsigned error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(FoldersTest, WithoutOpenat2EveryLinkIsRefused) {
  Link(At("secret/below"), "read/absolute");
  Link("../secret/below", "read/relative");
  Link("below", "read/inner");
  Link("below/f", "read/file");
  Link(At("secret"), "write/out");
  for (const unsigned error : {ENOSYS, EPERM}) {
    const pid_t child = fork();
    if (child == 0) {
      int wrong = ForbidOpenat2(error) ? 0 : 100;
      const auto text = Read("read/below/f");
      wrong += text.ok() && *text == "read/below" ? 0 : 1;
      wrong += ReadCode("read/nothing/f") == StatusCode::kNotFound ? 0 : 2;
      for (const char* name : {"read/absolute/f", "read/relative/f", "read/inner/f", "read/file",
                               "read/../secret/below/f"}) {
        wrong += ReadCode(name) == StatusCode::kPermissionDenied ? 0 : 4;
      }
      wrong += WriteCode("write/below/x") == StatusCode::kOk ? 0 : 32;
      wrong += WriteCode("write/out/x") == StatusCode::kPermissionDenied ? 0 : 64;
      _exit(wrong);
    }
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFEXITED(state));
    EXPECT_EQ(WEXITSTATUS(state), 0) << "with errno " << error;
  }
  EXPECT_TRUE(IsUntouched());
}

}  // namespace
}  // namespace patchbay
