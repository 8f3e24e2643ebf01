// The record of a job over slides that a command left to a cluster: the scheduler knows numbers
// only, and `patchbay wait`, `job` and `logs` shall name files as the command would have.
//
//   PATCHBAY_HOME/jobs/<job>-<time of submission>.json   owner-only
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cli/jobs/slide_job.h"
#include "runtime/client/environment.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

Status RecordRequest(const client::Environment& environment, const protocol::JobRow& job,
                     const SlideJobRequest& request);

/// The running job among `jobs` whose request equals `request`, submitted by a command of
/// this home that has ended since; its request is recorded again for this process. nullopt when
/// there is none, or its command still runs.
std::optional<JobId> JobToJoin(const client::Environment& environment,
                               const std::vector<protocol::JobRow>& jobs,
                               const SlideJobRequest& request);

/// Nothing for another kind of job, and for one that another user or machine submitted.
std::optional<SlideJobRequest> RecordedRequest(const client::Environment& environment,
                                               const protocol::JobRow& job);

std::string RecordsFolder(const client::Environment& environment);
/// The file of a job's record, whether or not it is there.
std::string RecordPath(const client::Environment& environment, const protocol::JobRow& job);
/// All records: the file, and each path that it has of a source or store.
std::vector<std::pair<std::string, std::vector<std::string>>> RecordsOfJobs(
    const client::Environment& environment);

/// For one thread at a time. Use the same object while a job runs: it reads only new files.
class SlidesDone {
 public:
  /// "slides 3/12"; "" when it cannot be known from here, for example before the job has listed its
  /// slides. The last count stays after the job has removed its folder.
  std::string Text(const SlideJobRequest& request);
  /// The text of a job that is done: "slides 12/12".
  std::string TextOfDone(const SlideJobRequest& request);
  /// Slides done at the last call of Text.
  std::int64_t done() const { return done_; }

 private:
  void Look(const std::string& folder, const StagedJobKind& kind);

  std::set<std::string> slides_;  ///< with an outcome
  std::int64_t done_ = 0;
  std::string seen_;
};

}  // namespace patchbay::cli
