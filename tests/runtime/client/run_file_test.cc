// Errors of a run, at the place in its config that they are about.
#include "runtime/client/run_file.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"

namespace patchbay::client {
namespace {

class RunFileErrors : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "patchbay-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  StatusOr<RunFile> Read(std::string_view text) {
    const std::string file = folder_ + "/run.yaml";
    EXPECT_TRUE(WriteFileDurably(file, AsBytes(text)).ok());
    RunSource source;
    source.file = file;
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
  ASSERT_TRUE(WriteFileDurably(table, AsBytes(std::string_view("path\na.svs\n"))).ok());
  const auto places = Read(StrCat("dataset: ", table, "\npatch: {size: [8, 8]}\nsampling:\n",
                                  "  positions: nope.csv\n"));
  EXPECT_EQ(MessageOf(places.status()),
            At(4) +
                "key 'sampling.positions': read table of places: open: nope.csv: No such file or "
                "directory");
}

}  // namespace
}  // namespace patchbay::client
