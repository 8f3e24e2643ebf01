// One agent at a time for a node's key on one machine: two would take the node from each other for
// ever, as the scheduler takes the later one for a restart of the earlier.
#pragma once

#include <string>

#include "runtime/os/file.h"
#include "runtime/wire/control/event_loop.h"
#include "runtime/wire/control/keys.h"

namespace patchbay::workers {

/// The right of this process to speak for a key on this machine, as this user. It ends with the
/// process, so that an agent that was killed is in nobody's way. Lives on its loop's thread.
class KeyClaim {
 public:
  /// `host_identity` bounds the claim: the scheduler tells apart what lies beyond. `loop` must
  /// outlive it.
  KeyClaim(control::EventLoop& loop, const control::KeyFile& key, const std::string& host_identity);
  ~KeyClaim();
  KeyClaim(const KeyClaim&) = delete;
  KeyClaim& operator=(const KeyClaim&) = delete;

  /// AlreadyExists, naming the process, as long as another agent of this user has the claim. OK
  /// once it is this one's, and where the kernel has no such claims to give. Does not block.
  Status Take();

 private:
  control::EventLoop& loop_;
  const std::string key_name_, socket_name_;
  UniqueFd listener_;
  control::EventLoop::Id watch_ = 0;
};

}  // namespace patchbay::workers
