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
    request_.work = (fs::temp_directory_path() / ("slides_done_" + Hex64(RandomU64()))).string();
    fs::create_directories(request_.work + "/slides");
    fs::create_directories(request_.work + "/failures");
    request_.plan.sources = 2;
  }
  void TearDown() override { fs::remove_all(request_.work); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(request_.work + "/" + name) << text;
  }

  SlideJobRequest request_;
  SlidesDone done_;
};

TEST_F(SlidesOfAJob, AnIngestsSlideCountsOnceItHasADigestWhicheverRunFinishedIt) {
  request_.kind = "ingest";
  EXPECT_EQ(done_.Text(request_), "slides 0/2");
  Write("slides/run1.0.json", R"({"digest": ""})");
  EXPECT_EQ(done_.Text(request_), "slides 0/2") << "opened, not finished";
  Write("slides/run1.0.json", R"({"digest": "ab"})");
  Write("slides/run2.0.json", R"({"digest": "ab"})");
  EXPECT_EQ(done_.Text(request_), "slides 1/2");
  for (const char* name : {"1", "2", "3"}) {
    Write(StrCat("slides/run1.", name, ".json"), R"({"digest": "cd"})");
  }
  EXPECT_EQ(done_.Text(request_), "slides 2/2") << "never more than were found";
}

TEST_F(SlidesOfAJob, TheCountNeverFallsBack) {
  request_.kind = "spectra";
  Write("slides/0.json", "{}");
  Write("failures/1.json", "{}");
  Write("failures/1.txt", "");
  EXPECT_EQ(done_.Text(request_), "slides 2/2");
  fs::remove(request_.work + "/failures/1.json");
  EXPECT_EQ(done_.Text(request_), "slides 2/2");
  fs::remove_all(request_.work);
  EXPECT_EQ(done_.Text(request_), "slides 2/2");
}

TEST_F(SlidesOfAJob, OfAJobThatIsDoneAllSlidesAreDoneWhateverWasSeenLast) {
  request_.kind = "ingest";
  EXPECT_EQ(done_.Text(request_), "slides 0/2");
  fs::remove_all(request_.work);
  EXPECT_EQ(done_.TextOfDone(request_), "slides 2/2");
  EXPECT_EQ(done_.done(), 2);
  request_.work = "";
  EXPECT_EQ(SlidesDone().TextOfDone(request_), "") << "not known which";
}

}  // namespace
}  // namespace patchbay::cli
