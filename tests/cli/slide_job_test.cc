// Messages of a command on slides that other processes know by number.
#include "runtime/cli/jobs/slide_job.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cli/jobs/recorded_request.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "tests/described.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

SlideJobRequest Request() {
  SlideJobRequest request;
  request.kind = "ingest";
  request.staging = ".patchbay-ingest";
  request.out = "/data/out";
  request.sources = {"/data/slides", "/data/b\xff.svs"};
  request.slides = {"/data/slides/a.svs", "/data/b\xff.svs"};
  return request;
}

TEST(SlideJob, FilesOfAWorkersErrorHaveTheirNames) {
  SlideJobRequest request = Request();
  request.slides[0] = "/data/slides/slide 3: image 2.svs";
  const auto said = [&](SubjectKind kind, std::uint64_t index, const std::string& part,
                        const std::string& cause) {
    return TextOf(
        OutcomeOf(ErrorAbout(absl::StatusCode::kNotFound, "open", {kind, index, part}, cause)),
        request.Names());
  };
  EXPECT_EQ(said(SubjectKind::kRun, 0, "a.ome.zarr", "exists"),
            "open: /data/out/a.ome.zarr: exists");
  EXPECT_EQ(said(SubjectKind::kSlide, 1, "", "Permission denied"),
            "open: /data/b\xff.svs: Permission denied");
  EXPECT_EQ(said(SubjectKind::kSlide, 0, "", "slide 1: cut"),
            "open: /data/slides/slide 3: image 2.svs: slide 1: cut");
  EXPECT_EQ(said(SubjectKind::kFile, 0, "", "no slide in this folder"),
            "open: /data/slides: no slide in this folder");
  EXPECT_EQ(said(SubjectKind::kSlide, 4, "", "not finished, OUT: x"),
            "open: slide 4: not finished, OUT: x");
}

TEST(SlideJob, ASourceThatIsNotThereIsRefusedByItsName) {
  const std::string here = fs::canonical(fs::temp_directory_path()).string();
  EXPECT_TRUE(RequestSlideJob("ingest", {here}, here + "/out").ok());
  const auto request =
      RequestSlideJob("ingest", {here, here + "/no such slide.svs"}, here + "/out");
  EXPECT_EQ(request.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(request.status()),
            StrCat("ingest: ", here, "/no such slide.svs: no such file or folder"));
}

TEST(SlideJob, EveryFieldOfItsRecordComesBack) {
  test::ExpectEveryFieldComesBack<SlideJobRecord>();
}

class RecordedRequestTest : public testing::Test {
 protected:
  void SetUp() override {
    environment_.home =
        (fs::canonical(fs::temp_directory_path()) / ("recorded_" + Hex64(RandomU64()))).string();
    job_.job = 7;
    job_.kind = "ingest";
    job_.submitted_at = 1'700'000'000;
  }
  void TearDown() override { fs::remove_all(environment_.home); }

  client::Environment environment_;
  protocol::JobRow job_;
};

TEST_F(RecordedRequestTest, ComesBackForItsJobAloneAndOnlyItsOwnerReadsIt) {
  EXPECT_FALSE(RecordedRequest(environment_, job_).has_value());
  ASSERT_TRUE(RecordRequest(environment_, job_, Request()).ok());
  const auto request = RecordedRequest(environment_, job_);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->kind, "ingest");
  EXPECT_EQ(request->staging, Request().staging);
  EXPECT_EQ(request->out, Request().out);
  EXPECT_EQ(request->sources, Request().sources);
  EXPECT_EQ(request->slides, Request().slides);
  const fs::path folder = environment_.home + "/jobs";
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
  protocol::JobRow other = job_;
  other.submitted_at += 1;  // a job of another cluster
  EXPECT_FALSE(RecordedRequest(environment_, other).has_value());
  other = job_;
  other.kind = "stream";
  EXPECT_FALSE(RecordedRequest(environment_, other).has_value());
}

TEST_F(RecordedRequestTest, AJobIntoStoresComesBackWithItsStores) {
  job_.kind = "labels";
  SlideJobRequest labels;
  labels.kind = "labels";
  labels.rows = {{"/data/a.ome.zarr", "/data/a.geojson"}, {"/data/b.ome.zarr", "/data/b.geojson"}};
  ASSERT_TRUE(RecordRequest(environment_, job_, labels).ok());
  const auto request = RecordedRequest(environment_, job_);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->rows, labels.rows);
  const Status failed =
      ErrorAbout(absl::StatusCode::kNotFound, "open", {SubjectKind::kStore, 1, ""}, "gone");
  EXPECT_EQ(TextOf(OutcomeOf(failed), request->Names()), "open: /data/b.ome.zarr: gone");
  EXPECT_EQ(request->Names().files[1], labels.rows[1].file);
}

/// Runs in a process of its own, which has ended when this returns.
template <typename Work>
void InAnotherProcess(const Work& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int wait_status = 0;
  ASSERT_EQ(waitpid(child, &wait_status, 0), child);
  ASSERT_EQ(wait_status, 0);
}

TEST_F(RecordedRequestTest, ACommandJoinsTheJobOfTheSameCommandThatHasEnded) {
  job_.state = protocol::JobState::kRunning;
  SlideJobRequest request = Request();
  request.payload = {{"chunk", 512}};
  request.manifest = {.sources = request.sources, .out = request.out};
  EXPECT_FALSE(JobToJoin(environment_, {job_}, request).has_value()) << "nothing is recorded";
  InAnotherProcess([&] {
    SlideJobRequest of_run = request;
    of_run.manifest.run = 0x123;
    return RecordRequest(environment_, job_, of_run).ok();
  });
  SlideJobRequest other = request;
  other.payload["chunk"] = 256;
  EXPECT_FALSE(JobToJoin(environment_, {job_}, other).has_value()) << "another setting";
  other = request;
  other.manifest.sources = {"/data/slides/c.svs"};
  EXPECT_FALSE(JobToJoin(environment_, {job_}, other).has_value()) << "another source";
  protocol::JobRow ended = job_;
  ended.state = protocol::JobState::kDone;
  EXPECT_FALSE(JobToJoin(environment_, {ended}, request).has_value());
  EXPECT_EQ(JobToJoin(environment_, {ended, job_}, request), job_.job);
  EXPECT_FALSE(JobToJoin(environment_, {job_}, request).has_value()) << "this command lives";
}

}  // namespace
}  // namespace patchbay::cli
