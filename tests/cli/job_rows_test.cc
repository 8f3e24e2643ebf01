// Rows of jobs, and errors that are usage errors.
#include <gtest/gtest.h>

#include "runtime/cli/command.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/client/run_file.h"

namespace patchbay::cli {
namespace {

TEST(JobTable, HasEachNumberInItsColumn) {
  protocol::JobRow job;
  job.job = 11;
  job.kind = "ingest";
  job.tasks_total = 44;
  job.tasks_done = 33;
  job.tasks_failed = 22;
  const std::vector<std::string> lines = JobTable({job});
  ASSERT_EQ(lines.size(), 2u);
  std::size_t at = 0;
  for (const char* number : {"11", "44", "33", "22"}) {
    const std::size_t found = lines[1].find(number, at);
    ASSERT_NE(found, std::string::npos) << lines[1];
    at = found + 2;
  }
}

TEST(UsageErrors, AreThoseOfTheCommandLineAndOfTheConfig) {
  EXPECT_TRUE(IsUsageError(UsageError("--x")));
  EXPECT_TRUE(IsUsageError(client::ConfigFault("run.yaml:1: key 'x'")));
  EXPECT_FALSE(IsUsageError(absl::InvalidArgumentError("run.yaml:1: key 'x'")));
  EXPECT_FALSE(IsUsageError(absl::OkStatus()));
}

}  // namespace
}  // namespace patchbay::cli
