#include "runtime/client/scheduler_away.h"

#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::client {

void SchedulerAway::Lost(TimeMs now_ms) {
  if (since_ms_ < 0) since_ms_ = now_ms;
}

std::string SchedulerAway::Back() {
  since_ms_ = -1;
  if (std::exchange(said_ms_, -1) < 0) return "";
  return StrCat(what_, ": the scheduler is back");
}

StatusOr<std::string> SchedulerAway::Look(TimeMs now_ms, const Status& why) {
  if (since_ms_ < 0) return std::string();
  const TimeMs away_ms = now_ms - since_ms_, left_ms = grace_ms_ - away_ms;
  const std::string gone =
      StrCat(what_, ": no scheduler for ", away_ms / 1000, " s (", MessageOf(why), ")");
  if (left_ms < 0) return Unavailable(gone);
  const bool due = said_ms_ < 0 || now_ms - said_ms_ >= kSayAwayEveryMs;
  if (away_ms < kSayAwayAfterMs || !due) return std::string();
  said_ms_ = now_ms;
  return StrCat(gone, ", the stream goes on waiting for ", left_ms / 1000, " s");
}

bool IsFinal(const Status& status) {
  return !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status) &&
         !absl::IsResourceExhausted(status);
}

}  // namespace patchbay::client
