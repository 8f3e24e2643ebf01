// How many slides of a running job are done, from what its workers write.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/cli/jobs/recorded_request.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

class SlidesOfAJob : public testing::Test {
 protected:
  void SetUp() override {
    order_.work = (fs::temp_directory_path() / ("slides_done_" + Hex64(RandomU64()))).string();
    fs::create_directories(order_.work + "/slides");
    fs::create_directories(order_.work + "/failures");
    order_.slide_count = 2;
  }
  void TearDown() override { fs::remove_all(order_.work); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(order_.work + "/" + name) << text;
  }

  SlideJobRequest order_;
  SlidesDone done_;
};

TEST_F(SlidesOfAJob, AnIngestsSlideCountsOnceItHasADigestWhicheverRunFinishedIt) {
  order_.kind = "ingest";
  EXPECT_EQ(done_.Text(order_), "slides 0/2");
  Write("slides/run1.0.json", R"({"digest": ""})");
  EXPECT_EQ(done_.Text(order_), "slides 0/2") << "opened, not finished";
  Write("slides/run1.0.json", R"({"digest": "ab"})");
  Write("slides/run2.0.json", R"({"digest": "ab"})");
  EXPECT_EQ(done_.Text(order_), "slides 1/2");
  for (const char* name : {"1", "2", "3"}) {
    Write(StrCat("slides/run1.", name, ".json"), R"({"digest": "cd"})");
  }
  EXPECT_EQ(done_.Text(order_), "slides 2/2") << "never more than were found";
}

TEST_F(SlidesOfAJob, TheCountNeverFallsBack) {
  order_.kind = "spectra";
  Write("slides/0.json", "{}");
  Write("failures/1.json", "{}");
  Write("failures/1.txt", "");
  EXPECT_EQ(done_.Text(order_), "slides 2/2");
  fs::remove(order_.work + "/failures/1.json");
  EXPECT_EQ(done_.Text(order_), "slides 2/2");
  fs::remove_all(order_.work);
  EXPECT_EQ(done_.Text(order_), "slides 2/2");
}

TEST_F(SlidesOfAJob, OfAJobThatIsDoneAllSlidesAreDoneWhateverWasSeenLast) {
  order_.kind = "ingest";
  EXPECT_EQ(done_.Text(order_), "slides 0/2");
  fs::remove_all(order_.work);
  EXPECT_EQ(done_.TextOfDone(order_), "slides 2/2");
  EXPECT_EQ(done_.done(), 2);
  order_.work = "";
  EXPECT_EQ(SlidesDone().TextOfDone(order_), "") << "not known which";
}

}  // namespace
}  // namespace patchbay::cli
