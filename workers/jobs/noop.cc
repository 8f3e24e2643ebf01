#include <algorithm>

#include "runtime/core/clock.h"
#include "workers/jobs/task/single_tasks.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxSpawned = 1'000'000;
/// The most that one noop spawns itself: they travel in one message.
constexpr std::int64_t kNoopsPerTask = 10'000;
constexpr std::int64_t kNsPerMs = 1'000'000;

StatusOr<std::int64_t> OptionalInt(const Json& payload, const char* key, std::int64_t most) {
  if (!payload.contains(key)) return 0;
  PB_ASSIGN_OR_RETURN(const std::int64_t value, JsonInt(payload, key, "noop"));
  if (value < 0 || value > most) {
    return InvalidArgument("noop: ", key, ": ", value, " is not in 0..", most);
  }
  return value;
}

}  // namespace

StatusOr<TaskOutput> RunNoop(TaskContext& context) {
  TaskOutput output;
  const Json& payload = context.payload;
  if (!payload.is_object() || payload.empty()) return output;
  PB_ASSIGN_OR_RETURN(const std::int64_t spawn, OptionalInt(payload, "spawn", kMaxSpawned));
  PB_ASSIGN_OR_RETURN(const std::int64_t spin_ms, OptionalInt(payload, "spin_ms", 3'600'000));
  if (payload.contains("result")) {
    PB_ASSIGN_OR_RETURN(output.result, JsonString(payload, "result", "noop"));
  }
  for (const std::int64_t until = SteadyNowNs() + spin_ms * kNsPerMs; SteadyNowNs() < until;) {
    context.AddProgress();
    PB_RETURN_IF_ERROR(context.CheckCancelled());
  }
  if (payload.contains("fail")) {
    PB_ASSIGN_OR_RETURN(const std::string why, JsonString(payload, "fail", "noop"));
    return FailedPrecondition("noop: ", why);
  }
  protocol::TaskSpec child;
  child.op = "noop";
  child.payload = "{}";
  if (spawn <= kNoopsPerTask) {
    output.spawned.assign(static_cast<std::size_t>(spawn), child);
    return output;
  }
  for (std::int64_t left = spawn; left > 0; left -= kNoopsPerTask) {
    child.payload = DumpJson({{"spawn", std::min(left, kNoopsPerTask)}});
    output.spawned.push_back(child);
  }
  return output;
}

}  // namespace patchbay::workers
