// The locks that `patchbay up` and `join` hold while they run: other commands learn of a home's
// cluster and nodes by them.
#pragma once

#include <string>

#include "runtime/client/environment.h"
#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay::client {

/// The cluster that runs from a PATCHBAY_HOME.
enum class ClusterState {
  kNone,
  kStarting,  ///< its keys may still be from an earlier start, or missing
  kReady,
};

/// Only reads: takes no lock that could make a starting `patchbay up` fail.
ClusterState ClusterHere(const Environment& environment);

/// Whether `up` or a `join` of this home serves.
bool NodeServesHere(const Environment& environment);
/// Each of them holds this while it serves; any number may. The home must exist.
StatusOr<UniqueFd> HoldNodeServes(const Environment& environment);

/// While it exists, this process is the cluster of its home; the kernel releases the lock when the
/// process ends.
class UpLock {
 public:
  /// FailedPrecondition when a cluster runs from there already. The home must exist.
  static StatusOr<UpLock> Take(const Environment& environment);

  /// Other commands connect from now on.
  Status ReportReady() const;

 private:
  UpLock(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

}  // namespace patchbay::client
