#include "scheduler/state/lease_bytes.h"

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

std::size_t InputBytes(const Job& job, const Task& task) {
  std::size_t bytes = 0;
  for (const std::uint32_t on : task.spec.depends_on) bytes += job.tasks[on].result.size();
  return bytes;
}

std::size_t LeaseBytes(const Job& job, const Task& task) {
  const std::size_t inputs = InputBytes(job, task);
  std::size_t bytes = 256 + task.spec.op.size() + task.spec.payload.size() + job.manifest.size() +
                      job.submitter.size() + 16 * task.spec.depends_on.size();
  for (const auto* prefixes : {&job.read_prefixes, &job.write_prefixes}) {
    for (const std::string& prefix : *prefixes) bytes += 16 + prefix.size();
  }
  return bytes + (inputs > kMaxLeaseInputBytes ? 0 : inputs);
}

}  // namespace patchbay::scheduler
