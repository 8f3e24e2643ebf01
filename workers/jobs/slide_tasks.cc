#include "workers/jobs/slide_tasks.h"

#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/strings.h"

namespace patchbay::workers {

std::vector<protocol::TaskSpec> SlideTasks(std::string_view job, const std::string& job_key,
                                           std::size_t slides) {
  std::vector<protocol::TaskSpec> tasks;
  for (std::size_t i = 0; i < slides; ++i) {
    protocol::TaskSpec open;
    open.op = StrCat(job, ".open");
    open.payload = DumpJson({{"job_key", job_key}, {"slide", i}});
    open.group = static_cast<std::uint32_t>(i) + 1;
    open.label = StrCat("slide ", i);
    tasks.push_back(std::move(open));
  }
  protocol::TaskSpec summary;
  summary.op = StrCat(job, ".summary");
  summary.payload = DumpJson({{"job_key", job_key}});
  summary.after_failures = true;
  summary.label = "summary";
  tasks.push_back(std::move(summary));
  return tasks;
}

protocol::TaskSpec CleanTask(std::string_view job, const std::string& job_key) {
  protocol::TaskSpec clean;
  clean.op = StrCat(job, ".clean");
  clean.payload = DumpJson({{"job_key", job_key}});
  clean.label = "clean";
  return clean;
}

}  // namespace patchbay::workers
