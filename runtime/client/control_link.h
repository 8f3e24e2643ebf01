// The client's view of the control plane: one request at a time, and what the scheduler says
// unasked. The real one runs over runtime/control; tests play a scheduler in the same process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/protocol/messages.h"

namespace patchbay::client {

/// Used by one thread, except Wake.
class ControlLink {
 public:
  virtual ~ControlLink() = default;
  /// Sends a command and waits for its fact; repeats it under the same request id while the
  /// scheduler is away. A RequestFailed comes back as its status; DeadlineExceeded after
  /// `timeout_ms`.
  virtual StatusOr<protocol::Body> Call(const protocol::Body& command, std::int64_t timeout_ms) = 0;
  /// Sends without waiting for an answer. Answers come through Receive.
  virtual Status Send(const protocol::Body& message) = 0;
  /// The next message nobody called for; nullopt after `timeout_ms` or Wake.
  virtual StatusOr<std::optional<protocol::Body>> Receive(std::int64_t timeout_ms) = 0;
  /// Makes a waiting Receive return. From any thread.
  virtual void Wake() = 0;
};

/// Connects with a key file (path, or /proc/self/fd/N of a memfd).
StatusOr<std::unique_ptr<ControlLink>> ConnectControl(const std::string& key_file);

}  // namespace patchbay::client
