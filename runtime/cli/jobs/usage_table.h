// Rows of usage as `patchbay usage` sums them up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

/// Costs of a team, of one of its users or of one job.
struct UsageSum {
  std::string team, user;
  JobId job = 0;  ///< 0: jobs that are no longer told apart
  protocol::WorkCost counted, wasted;
};

/// The sums by "team", "user" or "job", in that order.
std::vector<UsageSum> SumsBy(const std::string& by, const std::vector<protocol::UsageRow>& rows);

/// "24h" and "7d" before `now`, or the begin of a local day, "2026-11-27", in seconds since 1970.
StatusOr<std::int64_t> TimeOf(const std::string& text, std::int64_t now);

}  // namespace patchbay::cli
