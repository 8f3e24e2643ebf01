// How many slides of a job are done, from what the job leaves in its folder.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "runtime/cli/jobs/slide_job.h"

namespace patchbay::cli {

/// One thread at a time; ask the same object again while a job runs, it reads only what is new.
class SlidesDone {
 public:
  /// "slides 3/12"; "" when that is not to be seen from here, such as before the job has listed its
  /// slides. What was seen stays when the job has removed its folder.
  std::string Text(const SlideJobRequest& order);
  /// The same of a job that is done: "slides 12/12".
  std::string TextOfDone(const SlideJobRequest& order);
  /// As of the last Text.
  std::int64_t done() const { return done_; }

 private:
  std::int64_t IngestsDone(const std::string& folder);

  std::set<std::string> ingested_;  ///< outcomes that name a finished store
  std::int64_t done_ = 0;
  std::string seen_;
};

}  // namespace patchbay::cli
