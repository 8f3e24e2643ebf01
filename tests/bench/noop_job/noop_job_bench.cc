// No-op tasks through a running cluster and its real workers: each its own record and outcome.
//
//   patchbay-bench-noop-job KEY_FILE [TASKS]     default 100000
#include <cstdio>
#include <cstdlib>

#include "runtime/client/client.h"
#include "runtime/core/clock.h"

namespace patchbay {
namespace {

Status Measure(const std::string& key_file, std::uint64_t tasks) {
  PB_ASSIGN_OR_RETURN(client::Client client, client::Client::Connect(key_file));
  protocol::SubmitJob submit;
  submit.kind = "noop";
  submit.name = "noop";
  submit.root.op = "noop";
  submit.root.payload = StrCat("{\"spawn\": ", tasks, "}");
  const std::int64_t from_ns = SteadyNowNs();
  PB_ASSIGN_OR_RETURN(const JobId job, client.SubmitJob(std::move(submit)));
  PB_ASSIGN_OR_RETURN(const protocol::JobRow row, client.Wait(job));
  const double seconds = static_cast<double>(SteadyNowNs() - from_ns) * 1e-9;
  if (row.state != protocol::JobState::kDone || row.tasks_done < tasks) {
    return absl::InternalError(StrCat("noop job: ", row.tasks_done, " of ", tasks, " tasks done"));
  }
  std::printf("%llu tasks in %.2f s: %.0f/s\n", static_cast<unsigned long long>(row.tasks_done),
              seconds, static_cast<double>(row.tasks_done) / seconds);
  return absl::OkStatus();
}

}  // namespace
}  // namespace patchbay

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: patchbay-bench-noop-job KEY_FILE [TASKS]\n");
    return 2;
  }
  const std::uint64_t tasks = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100'000;
  const patchbay::Status status = patchbay::Measure(argv[1], tasks);
  if (!status.ok()) std::fprintf(stderr, "%s\n", patchbay::Describe(status).c_str());
  return status.ok() ? 0 : 1;
}
