// Bytes of stores and slides: the file byte store, its descriptors, the shared cache of indexes.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/shard_index.h"
#include "tests/contract/byte_store_contract.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"
#include "tests/runtime/wire/control/moved_clock.h"

namespace patchbay::zarr {
namespace {

/// Descriptors of this process on files below `folder`.
int OpenBelow(const std::string& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(entry.path(), error);
    if (!error && target.string().starts_with(folder)) ++count;
  }
  return count;
}

/// Files below a folder; an object gets its name when it is whole.
class FilePlace final : public StoragePlace {
 public:
  void Put(const std::string& key, const std::string& content) override {
    WriteText(folder_ / "next", content);
    std::filesystem::create_directories(std::filesystem::path(folder_ / key).parent_path());
    std::filesystem::rename(folder_ / "next", folder_ / key);
  }
  std::unique_ptr<ByteStore> Open() override {
    return std::make_unique<FileByteStore>(Folders::OfThisUser(), folder_.path(),
                                           std::make_shared<FileCache>(2));
  }

 private:
  const TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Files, ByteStoreContract,
                         testing::Values<StoragePlaceMaker>(+[]() -> std::unique_ptr<StoragePlace> {
                           return std::make_unique<FilePlace>();
                         }));

TEST(FileByteStore, TakesNothingButFiles) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "c/0");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  FileByteStore store(Folders::OfThisUser(), folder.path(), std::make_shared<FileCache>(2));
  for (const char* key : {"c/0", "pipe"}) {
    const Status status = store.Open(key).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << key << ": " << status;
    EXPECT_NE(status.message().find("not a regular file"), std::string::npos) << status;
  }
  WriteText(folder / "file", "x");
  EXPECT_EQ(*store.Open("file/below"), nullptr) << "a file has nothing below it";
  EXPECT_EQ(Content(*std::make_unique<FileByteStore>(Folders::OfThisUser(), folder / "file",
                                                     std::make_shared<FileCache>(1)),
                    ""),
            "x");
}

TEST(FileCache, HasOneBoundForAllStoresAndClosesWhatAStoreLeaves) {
  const TempFolder folder;
  for (int i = 0; i < 20; ++i) WriteText(folder / StrCat("s", i % 2, "/", i), StrCat(i));
  const auto files = std::make_shared<FileCache>(5);
  auto first = std::make_unique<FileByteStore>(Folders::OfThisUser(), folder / "s0", files);
  FileByteStore second(Folders::OfThisUser(), folder / "s1", files);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; i += 2) {
      EXPECT_EQ(Content(*first, StrCat(i)), StrCat(i));
      EXPECT_EQ(Content(second, StrCat(i + 1)), StrCat(i + 1));
    }
  }
  EXPECT_EQ(OpenBelow(folder.path()), 5);
  first.reset();
  EXPECT_LE(OpenBelow(folder.path()), 3);
  EXPECT_EQ(OpenBelow(folder / "s0"), 0);
}

TEST(FileByteStore, AFileThatCannotBeOpenedIsNotOneThatIsNotThere) {
  const TempFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  FileByteStore store(Folders::OfThisUser(), folder / "", std::make_shared<FileCache>(1));
  EXPECT_FALSE(store.Open("loop").ok());
  EXPECT_TRUE(store.Open("none").ok());
}

TEST(FileCache, GivesAStoreThatIsOpenedLaterTheFilesThatAreThereThen) {
  const TempFolder folder;
  WriteText(folder / "s/a", "old");
  const auto files = std::make_shared<FileCache>(5);
  FileByteStore before(Folders::OfThisUser(), folder / "s", files);
  EXPECT_EQ(Content(before, "a"), "old");
  WriteText(folder / "t", "new");
  std::filesystem::rename(folder / "t", folder / "s/a");
  FileByteStore after(Folders::OfThisUser(), folder / "s", files);
  EXPECT_EQ(Content(after, "a"), "new");
}

TEST(CachedFile, GivesNoBytesOfAFileThatChangedAfterItWasOpened) {
  const TempFolder folder;
  const std::string path = folder / "a";
  const std::vector<std::pair<std::function<void()>, std::string>> changes = {
      {[&] { OverwriteInPlace(path, "NEWER"); }, "it was written or replaced"},
      {[&] { std::filesystem::resize_file(path, 2); }, "it was written or replaced"},
      {[&] { std::filesystem::rename(folder / "b", path); }, "ctime"},
      {[&] { std::filesystem::remove(path); }, "ctime"},
      {[&] { ASSERT_EQ(chmod(path.c_str(), 0400), 0); }, "permissions, owner or hard links"}};
  for (const auto& [change, cause] : changes) {
    WriteText(path, "older");
    WriteText(folder / "b", "other");
    FileByteStore store(Folders::OfThisUser(), folder.path(), std::make_shared<FileCache>(2));
    const auto file = *store.Open("a");
    std::string text(5, ' ');
    const auto read = [&] { return file->Read(0, std::as_writable_bytes(std::span(text)), "a"); };
    ASSERT_TRUE(read().ok());
    AwaitNextTick(path);
    change();
    for (int twice = 0; twice < 2; ++twice) {
      EXPECT_TRUE(absl::IsAborted(read())) << read();
      EXPECT_NE(read().message().find(cause), std::string::npos) << read() << " " << cause;
    }
    const auto anew = store.Open("a");
    ASSERT_TRUE(anew.ok());
    EXPECT_NE(*anew, file) << "who asks again gets what lies there";
    std::error_code ignored;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, ignored);
  }
}

TEST(FileCache, LooksAtAPathOnceASecondAndOpensWhatWasPutThere) {
  const TempFolder folder;
  MovedClock clock;
  WriteText(folder / "s/a", "old");
  std::filesystem::create_hard_link(folder / "s/a", folder / "kept");
  const auto files = std::make_shared<FileCache>(5, clock);
  FileByteStore store(Folders::OfThisUser(), folder / "s", files);
  const auto first = *store.Open("a");
  WriteText(folder / "t", "new");
  std::filesystem::rename(folder / "t", folder / "s/a");
  EXPECT_EQ(*store.Open("a"), first) << "no second has passed";
  clock.Move(FileCache::kPathCheckMs);
  EXPECT_EQ(Content(store, "a"), "new");
  const auto second = *store.Open("a");
  clock.Move(FileCache::kPathCheckMs);
  EXPECT_EQ(*store.Open("a"), second) << "it is the one that lies there";
  std::filesystem::remove(folder / "s/a");
  clock.Move(FileCache::kPathCheckMs);
  EXPECT_EQ(*store.Open("a"), nullptr);
}

TEST(IndexCache, HasOneBoundForAllArraysAndTellsThemApart) {
  IndexCache cache(10'000);
  const std::uint64_t a = cache.AddArray(), b = cache.AddArray();
  ASSERT_NE(a, b);
  const auto index = [](std::uint64_t offset) {
    return std::make_shared<const StampedIndex>(
        StampedIndex{ShardIndex(100, IndexEntry{offset, 1}), StrCat(offset)});
  };
  cache.Insert({a, 0}, index(1));
  cache.Insert({b, 0}, index(2));
  const auto offset_of = [&](const CachedShard& shard) {
    return cache.Find(shard)->entries[0].offset;
  };
  EXPECT_EQ(offset_of({a, 0}), 1u);
  EXPECT_EQ(offset_of({b, 0}), 2u);
  const std::size_t bytes = cache.bytes();
  cache.Insert({a, 0}, index(3));
  EXPECT_EQ(offset_of({a, 0}), 3u) << "of the file that lies there now";
  EXPECT_EQ(cache.bytes(), bytes);
  for (std::uint64_t i = 1; i < 20; ++i) {
    cache.Insert({b, i}, index(i));
    ASSERT_NE(cache.Find({a, 0}), nullptr) << "used all the time";
    EXPECT_LE(cache.bytes(), 10'000u);
  }
  EXPECT_EQ(cache.Find({b, 1}), nullptr);
}

}  // namespace
}  // namespace patchbay::zarr
