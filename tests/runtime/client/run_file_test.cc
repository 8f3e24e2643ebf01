// Errors of a run, at the place in its config that they are about.
#include "runtime/client/run_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "ops/all_ops.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::client {
namespace {

class RunFileErrors : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "patchbay-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  StatusOr<RunFile> Read(std::string_view text, const std::string& split = "",
                         bool streams = false) {
    const std::string file = folder_ + "/run.yaml";
    EXPECT_TRUE(WriteFileDurably(Folders::OfThisUser(), file, AsBytes(text)).ok());
    RunSource source;
    source.ops = &ops::Table();
    source.file = file;
    source.split = split;
    source.streams = streams;
    return ReadRun(source);
  }
  std::string At(int line) const { return StrCat(folder_, "/run.yaml:", line, ": "); }

  std::string folder_;
};

TEST_F(RunFileErrors, OfWhatTheDatasetNamesSayWhereItIsNamed) {
  const auto run = Read("patch: {size: [8, 8]}\ndataset: /nope\n");
  ASSERT_TRUE(run.ok()) << run.status();
  const Status missing = absl::NotFoundError("find images: /nope: No such file or directory");
  EXPECT_EQ(MessageOf(run->Locate(missing)),
            At(2) + "key 'dataset': find images: /nope: No such file or directory");
  EXPECT_TRUE(absl::IsNotFound(run->Locate(missing)));
}

TEST_F(RunFileErrors, OfImagesThatAreNotAlikeSayWhereTheyAreNamed) {
  const auto run = Read("dataset: [a.svs, b.svs]\npatch: {size: [8, 8]}\n");
  ASSERT_TRUE(run.ok()) << run.status();
  const Status unlike = absl::InvalidArgumentError(
      "plan stream: key 'dataset': b.svs: 1 channel of uint8, but a.svs has 3 of uint8");
  EXPECT_EQ(MessageOf(run->Locate(unlike)), StrCat(At(1), MessageOf(unlike)));
}

TEST_F(RunFileErrors, OfTablesThatAreNotThereSayWhereTheyAreNamed) {
  const auto cohort = Read("patch: {size: [8, 8]}\ndataset: nope.csv\n");
  EXPECT_EQ(MessageOf(cohort.status()),
            At(2) + "key 'dataset': read table: open: nope.csv: No such file or directory");
  EXPECT_TRUE(absl::IsNotFound(cohort.status()));
  const std::string table = folder_ + "/a.csv";
  ASSERT_TRUE(
      WriteFileDurably(Folders::OfThisUser(), table, AsBytes(std::string_view("path\na.svs\n")))
          .ok());
  const auto places = Read(StrCat("dataset: ", table, "\npatch: {size: [8, 8]}\nsampling:\n",
                                  "  positions: nope.csv\n"));
  EXPECT_EQ(MessageOf(places.status()),
            At(4) +
                "key 'sampling.positions': read table of places: open: nope.csv: No such file or "
                "directory");
}

TEST_F(RunFileErrors, OfATableWithSplitsThatIsStreamedWithoutOneSayWhichThereAre) {
  const std::string table = folder_ + "/a.csv";
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), table,
                               AsBytes(std::string_view("path,f\na.svs,1\nb.svs,0\nc.svs,\n")))
                  .ok());
  const std::string config =
      StrCat("dataset: ", table, "\nsplit_column: f\npatch: {size: [8, 8]}\n");
  const auto unnamed = Read(config, "", true);
  EXPECT_TRUE(IsConfigFault(unnamed.status()));
  EXPECT_EQ(MessageOf(unnamed.status()),
            At(2) +
                "key 'split_column': a table with splits is streamed by split: name one of 0, 1 "
                "(--split, or split= in Python), or `all`, which is every row without "
                "augmentation");
  EXPECT_EQ(Read(config)->rows.size(), 3u);
  EXPECT_EQ(Read(config, "all", true)->rows.size(), 3u);
  EXPECT_EQ(Read(config, "0", true)->rows.size(), 1u);
  const auto role = Read(config + "augment: [flip]\n", "0", true);
  EXPECT_TRUE(IsConfigFault(role.status()));
  EXPECT_EQ(MessageOf(role.status()).substr(0, At(4).size() + 14), At(4) + "key 'augment':");
  EXPECT_EQ(Read(config + "augment: [flip]\n", "all", true)->config.augment.size(), 0u);
}

TEST_F(RunFileErrors, OfOneContentInTwoSplitsNameBothLines) {
  const std::string a(64, 'a'), b(64, 'b');
  const std::string table = folder_ + "/a.csv";
  const std::string rows = StrCat("path,f,content_hash\na.svs,,", a, "\nb.svs,x,\nc.svs,y,", b,
                                  "\nd.svs,y,\ne.svs,x,\n");
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), table, AsBytes(rows)).ok());
  const std::string config =
      StrCat("dataset: ", table, "\nsplit_column: f\npatch: {size: [8, 8]}\n");
  auto run = Read(config, "x");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->known_contents.compared(), 1u);  // the content of c; a is in no split
  const Digest known = *Digest::FromHex(a), other = *Digest::FromHex(b);
  // Content shared with a row that is in no split is no leak.
  EXPECT_TRUE(run->AddContent(0, known, "").ok());
  EXPECT_TRUE(run->AddContent(1, known, "").ok());
  EXPECT_EQ(run->known_contents.compared(), 3u);
  const Status leak = run->AddContent(1, other, "");
  EXPECT_TRUE(IsConfigFault(leak));
  EXPECT_EQ(MessageOf(leak),
            StrCat(table,
                   ":6: column 'path': the content is in the split 'x' here and in 'y' in line 4, "
                   "so that one split knows the other; keep one of the rows"));
  // A row in no split that came first does not hide those in two.
  auto all = Read(config, "all");
  EXPECT_TRUE(all->AddContent(1, known, "").ok());
  EXPECT_FALSE(all->AddContent(3, known, "").ok());
}

/// As many stores as several threads read: each result stands with its own row.
TEST_F(RunFileErrors, OfTwoOfManyStoresWithOneContentNameBothLines) {
  constexpr int kStores = 300, kFirst = 7, kSecond = 250;
  const auto write_store = [&](int number, int content) {
    const std::string store = StrCat(folder_, "/", number, ".zarr");
    std::filesystem::create_directory(store);
    std::ofstream(store + "/zarr.json")
        << StrCat(R"({"zarr_format": 3, "node_type": "group", "attributes": {"patchbay": )",
                  R"({"source_sha256": ")", Sha256Of(StrCat(content)).Hex(), R"("}}})");
  };
  std::string rows = "path\n";
  for (int i = 0; i < kStores; ++i) {
    write_store(i, i);
    rows += StrCat(i, ".zarr\n");
  }
  const std::string table = folder_ + "/a.csv";
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), table, AsBytes(rows)).ok());
  const std::string config = StrCat("dataset: ", table, "\npatch: {size: [8, 8]}\n");
  const auto distinct = Read(config);
  EXPECT_TRUE(distinct.ok()) << distinct.status();
  write_store(kSecond, kFirst);
  const auto refused = Read(config);
  EXPECT_TRUE(IsConfigFault(refused.status()));
  EXPECT_EQ(MessageOf(refused.status()),
            StrCat(table, ":", kSecond + 2, ": column 'path': the content is that of line ",
                   kFirst + 2, " too; a slide has one row"));
}

}  // namespace
}  // namespace patchbay::client
