// The event being handled, as every part of the core sees it. Private to scheduler/core.
#pragma once

#include <cstdint>

#include "scheduler/core/core.h"
#include "scheduler/policy/fair_share.h"
#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {

/// One object for the whole core. Invariant: `now` never goes back; `out` is null between events.
struct EventContext {
  TimeMs now = 0;
  std::int64_t wall = 0;  ///< seconds since 1970, only shown and journalled
  Actions* out = nullptr;
};

/// One message being handled.
struct Request {
  PeerId peer = 0;
  const PeerIdentity* identity = nullptr;
  std::uint64_t sender_incarnation = 0;
  std::uint64_t request_id = 0;
};

/// The account of the job's team and submitter.
inline AccountId AccountOf(FairShare& fair, Job& job) {
  if (job.account == kNoAccount) job.account = fair.Of(job.team, job.submitter);
  return job.account;
}

/// The error with which every part's Check reports a table that is wrong.
inline Status Broken(const std::string& what) { return Internal("check core: ", what); }

}  // namespace patchbay::scheduler
