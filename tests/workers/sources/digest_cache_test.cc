#include "workers/sources/digest_cache.h"

#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/folder_listing.h"
#include "tests/workers/sources/slide_fixtures.h"

namespace patchbay::workers {
namespace {

class DigestCaches : public testing::Test {
 protected:
  void WriteText(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), path, AsBytes(text)).ok());
  }
  std::string CacheFile() const { return folder_.File("cache/slide-digests"); }

  TemporaryFolder folder_;
  DigestCache cache_{Folders::OfThisUser(), folder_.File("cache")};
};

TEST_F(DigestCaches, DigestIsTheSha256OfTheFile) {
  WriteText(folder_.File("a"), "abc");
  const auto digest = cache_.DigestOf(folder_.File("a"));
  ASSERT_TRUE(digest.ok()) << Describe(digest.status());
  EXPECT_EQ(digest->Hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(DigestCaches, SecondLookIsRememberedNotComputed) {
  const std::string path = folder_.File("a");
  WriteText(path, "abc");
  ASSERT_TRUE(cache_.DigestOf(path).ok());
  ASSERT_TRUE(cache_.Store(*IdentityAt(Folders::OfThisUser(), path), Sha256Of("xyz")).ok());
  EXPECT_EQ(cache_.DigestOf(path)->Hex(), Sha256Of("xyz").Hex());
  EXPECT_EQ(DigestCache(Folders::OfThisUser(), "").DigestOf(path)->Hex(), Sha256Of("abc").Hex());
}

TEST_F(DigestCaches, AFileThatWasRewrittenUnderItsFormerTimeIsHashedAnew) {
  const std::string path = folder_.File("a");
  WriteText(path, "abc");
  ASSERT_TRUE(cache_.DigestOf(path).ok());
  struct stat before {};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  // Until the file system's clock has moved on.
  do {
    const auto fd = OpenFile(Folders::OfThisUser(), path, O_WRONLY);
    ASSERT_TRUE(fd.ok());
    ASSERT_TRUE(WriteAt(fd->get(), 0, AsBytes("xyz"), path).ok());
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(futimens(fd->get(), times), 0);
  } while (IdentityAt(Folders::OfThisUser(), path) == IdentityOf(before));
  EXPECT_EQ(cache_.DigestOf(path)->Hex(), Sha256Of("xyz").Hex());
}

TEST_F(DigestCaches, AFileWithoutEndIsHashedUntilTheCallerEndsIt) {
  const std::string path = folder_.File("sparse");
  WriteText(path, "II");
  std::error_code error;
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40, error);
  if (error) GTEST_SKIP() << "no such files here: " << error.message();
  int blocks = 0;
  const auto digest = cache_.DigestOf(path, [&blocks]() -> Status {
    return ++blocks < 3 ? absl::OkStatus() : absl::CancelledError("enough");
  });
  EXPECT_TRUE(absl::IsCancelled(digest.status()));
  EXPECT_EQ(blocks, 3);
}

TEST_F(DigestCaches, AnyChangeOfTheIdentityIsComputedAnew) {
  FileIdentity id{1, 2, 3, 4, 5};
  ASSERT_TRUE(cache_.Store(id, Sha256Of("x")).ok());
  ASSERT_TRUE(cache_.Find(id).has_value());
  for (const FileIdentity& other :
       {FileIdentity{9, 2, 3, 4, 5}, FileIdentity{1, 9, 3, 4, 5}, FileIdentity{1, 2, 9, 4, 5},
        FileIdentity{1, 2, 3, 9, 5}, FileIdentity{1, 2, 3, 4, 9}}) {
    EXPECT_FALSE(cache_.Find(other).has_value());
  }
}

TEST_F(DigestCaches, LastRecordOfAnIdentityCounts) {
  ASSERT_TRUE(cache_.Store({1, 2, 3, 4}, Sha256Of("x")).ok());
  ASSERT_TRUE(cache_.Store({1, 2, 3, 4}, Sha256Of("y")).ok());
  EXPECT_EQ(*cache_.Find({1, 2, 3, 4}), Sha256Of("y"));
}

TEST_F(DigestCaches, DamageCostsTheRecordNotTheAnswer) {
  ASSERT_TRUE(cache_.Store({1, 2, 3, 4}, Sha256Of("x")).ok());
  const auto good = ReadFile(Folders::OfThisUser(), CacheFile(), 1 << 20);
  ASSERT_TRUE(good.ok());
  for (std::size_t i = 0; i < good->size(); ++i) {
    std::string bad = *good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    WriteText(CacheFile(), bad);
    const auto found = cache_.Find({1, 2, 3, 4});
    EXPECT_TRUE(!found.has_value() || *found == Sha256Of("x")) << "byte " << i;
    ASSERT_TRUE(cache_.Store({5, 6, 7, 8}, Sha256Of("z")).ok());
    EXPECT_EQ(cache_.Find({5, 6, 7, 8}), Sha256Of("z")) << "byte " << i;
  }
  for (std::size_t cut = 0; cut < good->size(); ++cut) {
    WriteText(CacheFile(), good->substr(0, cut));
    const auto found = cache_.Find({1, 2, 3, 4});
    EXPECT_TRUE(!found.has_value() || *found == Sha256Of("x"));
    ASSERT_TRUE(cache_.Store({1, 2, 3, 4}, Sha256Of("w")).ok());
    EXPECT_EQ(cache_.Find({1, 2, 3, 4}), Sha256Of("w")) << "cut at " << cut;
  }
}

TEST_F(DigestCaches, ProcessesStoringAtOnceLoseNothing) {
  constexpr std::uint64_t kProcesses = 4, kRecords = 20;
  std::vector<pid_t> children;
  for (std::uint64_t p = 0; p < kProcesses; ++p) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      bool good = true;
      for (std::uint64_t i = 0; i < kRecords; ++i) {
        good = good && cache_.Store({p, i, 0, 0}, Sha256Of(StrCat(p, " ", i))).ok();
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  for (std::uint64_t p = 0; p < kProcesses; ++p) {
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      EXPECT_EQ(cache_.Find({p, i, 0, 0}), Sha256Of(StrCat(p, " ", i)));
    }
  }
}

TEST_F(DigestCaches, CacheThatCannotBeWrittenIsNoError) {
  WriteText(folder_.File("a"), "abc");
  WriteText(folder_.File("file"), "not a folder");
  const auto digest =
      DigestCache(Folders::OfThisUser(), folder_.File("file")).DigestOf(folder_.File("a"));
  ASSERT_TRUE(digest.ok()) << Describe(digest.status());
  EXPECT_EQ(*digest, Sha256Of("abc"));
}

TEST_F(DigestCaches, WhatIsNoFileIsRefused) {
  EXPECT_EQ(cache_.DigestOf(folder_.File("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cache_.DigestOf(folder_.path()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache_.DigestOf("/dev/null").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace patchbay::workers
