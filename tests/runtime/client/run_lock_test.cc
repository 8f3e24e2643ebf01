// A locked run: the rows of the table that it uses, and refusals.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/client/lock_file.h"
#include "runtime/client/run_file.h"
#include "runtime/core/ids.h"
#include "runtime/core/strings.h"

namespace patchbay::client {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> PathsOf(const RunFile& run) {
  std::vector<std::string> paths;
  for (const RunRow& row : run.rows) paths.push_back(row.path);
  return paths;
}

class LockedRun : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(fs::temp_directory_path()) / ("locked_run_" + Hex64(RandomU64()));
    fs::create_directories(root_);
    Write("t.csv", "path,slide_id,fold\na.svs,A,train\nb.svs,B,val\nc.svs,C,train\n");
    Write("run.yaml", StrCat("dataset: ", (root_ / "t.csv").string(),
                             "\nsplit_column: fold\npatch: {size: [8, 8]}\n"));
    lock_.keys = {{}, {}, "fold", {"fold", "patient_id"}, {}};
    Pin("C", "train", 'c');
    Pin("B", "val", 'b');
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
  }
  void Pin(const std::string& id, const std::string& fold, char digit) {
    plan::LockedImage image;
    image.slide_id = id;
    image.cells = {{"fold", fold}};
    image.digest = Digest::FromHex(std::string(64, digit)).value();
    lock_.images.push_back(image);
  }
  StatusOr<RunFile> Read(const std::string& split = "", std::vector<std::string> set = {}) {
    Write("run.lock", plan::LockText(lock_));
    RunSource source;
    source.ops = &ops::Table();
    source.file = (root_ / "run.yaml").string();
    source.split = split;
    source.overrides = std::move(set);
    return ReadRun(source);
  }
  std::string Error(std::vector<std::string> set = {}) {
    const auto run = Read("", std::move(set));
    return run.ok() ? "" : std::string(MessageOf(run.status()));
  }

  fs::path root_;
  plan::RunLock lock_;
};

TEST_F(LockedRun, TakesTheRowsOfTheLockInItsOrder) {
  const auto run = Read();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(PathsOf(*run), (std::vector<std::string>{root_ / "c.svs", root_ / "b.svs"}));
  EXPECT_EQ(run->unlocked_rows, 1u);
  const auto pins = [](const RunFile& file) {
    std::string text;
    for (const plan::PlannedRow& row : file.Manifest().table->rows) text += row.pins->image.Hex();
    return text;
  };
  EXPECT_EQ(pins(*run), std::string(64, 'c') + std::string(64, 'b'));
  const auto val = Read("val");
  ASSERT_TRUE(val.ok()) << val.status();
  EXPECT_EQ(pins(*val), std::string(64, 'b'));
}

TEST_F(LockedRun, OneContentThatTheLockHasInTwoSplitsIsRefused) {
  EXPECT_EQ(Error(), "");
  lock_.images[1].digest = lock_.images[0].digest;
  EXPECT_NE(Error().find("so that one split knows the other"), std::string::npos) << Error();
}

TEST_F(LockedRun, RowsThatComeLaterBreakNothing) {
  // Not even one that would leak: the patient of C in another split.
  Write("t.csv",
        "path,slide_id,fold,patient_id\nn.svs,N,val,P\nb.svs,B,val,\nc.svs,C,train,\nm.svs,M,train,"
        "P\n");
  const auto run = Read("train");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(PathsOf(*run), (std::vector<std::string>{root_ / "c.svs"}));
  EXPECT_EQ(run->unlocked_rows, 2u);
}

TEST_F(LockedRun, RowsThatWhereLeavesOutAreNotCounted) {
  const std::string table = "path,slide_id,fold,use\nb.svs,B,val,1\nc.svs,C,train,1\n";
  lock_.keys.where = {{"use", {"1"}}};
  lock_.keys.columns = {"fold", "patient_id", "use"};
  for (plan::LockedImage& image : lock_.images) image.cells["use"] = "1";
  Write("t.csv", StrCat(table, "d.svs,D,train,0\ne.svs,E,val,0\n"));
  const auto run = Read("train", {"where={use: 1}"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->unlocked_rows, 0u);
  Write("t.csv", StrCat(table, "d.svs,D,train,0\ne.svs,E,val,1\n"));
  EXPECT_EQ(Read("train", {"where={use: 1}"})->unlocked_rows, 1u);
}

TEST_F(LockedRun, RefusesWhatDiffersByLineAndColumn) {
  Write("t.csv", "path,slide_id,fold\nb.svs,B,train\nc.svs,C,train\nd.svs,D,val\n");
  EXPECT_EQ(Error(), StrCat((root_ / "t.csv").string(),
                            ":2: column 'fold': it is 'train', 'val' in the run's lock; "
                            "`patchbay lock --update` takes it as it is now"));
  Write("t.csv", "path,slide_id,fold\nb.svs,B,val\nd.svs,D,train\n");
  EXPECT_EQ(Error(), StrCat((root_ / "t.csv").string(),
                            ": no row has the slide_id 'C' of the run's lock; "
                            "`patchbay lock --update` takes it as it is now"));
}

TEST_F(LockedRun, RefusesOtherPositionsOfItsImages) {
  const std::string table = (root_ / "p.csv").string();
  const std::vector<std::string> set = {StrCat("sampling={positions: ", table, "}")};
  const std::string cure = "; `patchbay lock --update` takes it as it is now";
  Write("p.csv", "slide_id,x,y\nC,1,2\nB,3,4\nC,5,6\n");
  EXPECT_EQ(Error(set),
            StrCat(table, ": the positions of 'C' are not those of the run's lock", cure));
  RunSource source;
  source.ops = &ops::Table();
  source.file = (root_ / "run.yaml").string();
  source.overrides = set;
  source.for_lock = true;
  const auto now = ReadRun(source);
  ASSERT_TRUE(now.ok()) << now.status();
  ASSERT_EQ(now->rows.size(), 3u);
  lock_.images[0].places[table] = now->rows[2].places.at(table);  // C, the third row of the table
  lock_.images[1].places[table] = now->rows[1].places.at(table);
  EXPECT_EQ(Error(set), "");
  // Places of slides that are not in the lock are ignored.
  Write("p.csv", "slide_id,x,y\nA,7,7\nC,1,2\nB,3,4\nC,5,6\n");
  EXPECT_EQ(Error(set), "");
  Write("p.csv", "slide_id,x,y\nC,1,2\nB,3,5\nC,5,6\n");
  EXPECT_EQ(Error(set),
            StrCat(table, ": the positions of 'B' are not those of the run's lock", cure));
  EXPECT_TRUE(Read("train", set).ok());
}

TEST_F(LockedRun, RefusesAnotherOrderOfItsPositions) {
  const std::string table = (root_ / "p.csv").string();
  const std::vector<std::string> set = {StrCat("sampling={positions: ", table, "}")};
  const auto pin = [&] {
    RunSource source;
    source.ops = &ops::Table();
    source.file = (root_ / "run.yaml").string();
    source.overrides = set;
    source.for_lock = true;
    const auto now = ReadRun(source);
    ASSERT_TRUE(now.ok()) << now.status();
    lock_.images[0].places[table] = now->rows[2].places.at(table);
    lock_.images[1].places[table] = now->rows[1].places.at(table);
  };
  Write("p.csv", "slide_id,x,y\nC,1,2\nB,3,4\nC,5,6\n");
  pin();
  EXPECT_EQ(Error(set), "");
  // Each image has the places that it had, in the order that it had them.
  for (const char* other : {"C,1,2\nC,5,6\nB,3,4\n", "B,3,4\nC,1,2\nC,5,6\n"}) {
    Write("p.csv", StrCat("slide_id,x,y\n", other));
    EXPECT_NE(Error(set).find("the positions of 'C' are not those"), std::string::npos) << other;
  }
}

TEST_F(LockedRun, RefusesAnotherSizeOfPixels) {
  EXPECT_EQ(Error(), "") << "a lock that says nothing of it";
  for (plan::LockedImage& image : lock_.images) image.cells["mpp"] = "";
  EXPECT_EQ(Error(), "");
  Write("t.csv", "path,slide_id,fold,mpp\nb.svs,B,val,\nc.svs,C,train,0.25\n");
  EXPECT_NE(Error().find("column 'mpp': it is '0.25', '' in the run's lock"), std::string::npos)
      << Error();
  lock_.images[0].cells["mpp"] = "0.25";
  EXPECT_EQ(Error(), "");
  Write("t.csv", "path,slide_id,fold\nb.svs,B,val\nc.svs,C,train\n");
  EXPECT_NE(Error().find("column 'mpp': it is '', '0.25' in the run's lock"), std::string::npos)
      << Error();
}

TEST_F(LockedRun, RefusesAnotherPartOfASlide) {
  Write("t.csv", "path,slide_id,fold,focal_plane\nb.svs,B,val,\nc.svs,C,train,1.5\n");
  EXPECT_NE(Error().find("column 'focal_plane': it is '1.5', '' in the run's lock"),
            std::string::npos)
      << Error();
  lock_.images[0].cells["focal_plane"] = "1.5";
  EXPECT_EQ(Error(), "");
  Write("t.csv", "path,slide_id,fold\nb.svs,B,val\nc.svs,C,train\n");
  EXPECT_NE(Error().find("column 'focal_plane': it is '', '1.5' in the run's lock"),
            std::string::npos)
      << Error();
}

TEST_F(LockedRun, RefusesOtherKeys) {
  EXPECT_NE(Error({"where={slide_id: C}"}).find("run.lock: the config's where is not the lock's"),
            std::string::npos)
      << Error({"where={slide_id: C}"});
  EXPECT_EQ(Error({"seed=3"}), "");
}

TEST_F(LockedRun, RefusesALockThatIsNone) {
  const auto run = Read();
  ASSERT_TRUE(run.ok());
  Write("run.lock", "{}");
  RunSource source;
  source.ops = &ops::Table();
  source.file = (root_ / "run.yaml").string();
  EXPECT_FALSE(ReadRun(source).ok());
  source.for_lock = true;  // a run that makes the lock anew does not read it
  const auto now = ReadRun(source);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->rows.size(), 3u);
  EXPECT_FALSE(now->lock.has_value());
}

TEST_F(LockedRun, PathsOfTheLockAreThoseOfTheConfig) {
  EXPECT_EQ(LockPathOf("run.yaml"), "run.lock");
  EXPECT_EQ(LockPathOf("a.b/run.two.yml"), "a.b/run.two.lock");
  EXPECT_EQ(LockPathOf("a.b/run"), "a.b/run.lock");
}

}  // namespace
}  // namespace patchbay::client
