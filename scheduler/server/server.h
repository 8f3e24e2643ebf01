// The scheduler process around the pure core: sockets, clock, journal and keys in; what the core
// decides out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/status.h"
#include "runtime/wire/control/event_loop.h"
#include "scheduler/core/core.h"

namespace patchbay::scheduler {

struct ServerOptions {
  std::string state_folder;     ///< journal and lock; made if missing, owner-only
  std::string address;          ///< "tcp://ip:port", "ipc://@name"
  std::string server_key_file;  ///< the scheduler's own pair
  std::string keys_folder;      ///< the key table
  bool allow_public = false;    ///< the user named a public address on purpose
  CoreOptions core;
};

/// One running scheduler. Lives on its loop's thread; the journal's writer is the only other thread
/// of ours.
class Server {
 public:
  /// Takes the state folder, replays the journal, then listens: nobody is answered before the past
  /// is known. FailedPrecondition when another scheduler has the folder; otherwise as ServerSocket
  /// and Journal say.
  static StatusOr<std::unique_ptr<Server>> Open(control::EventLoop& loop,
                                                const ServerOptions& options);
  virtual ~Server() = default;

  virtual const std::string& address() const = 0;
  /// Ends the loop once what was sent is on its way.
  virtual void Stop() = 0;
  /// OK while it runs and after an orderly end; else what made it end (the journal's failure).
  virtual Status outcome() const = 0;
};

}  // namespace patchbay::scheduler
