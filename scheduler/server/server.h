// The scheduler process around the pure core: it feeds the core from sockets, clock, journal and
// keys, and carries out its actions.
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
  TimeMs grace_ms = 20'000;     ///< time for agents and trainers to leave at a stop
  std::string metrics;          ///< [ADDR:]PORT of the page of metrics; "" = none
  std::string dashboard;        ///< and of the dashboard
  std::string tls;              ///< file of the certificate of both; "" = none, on loopback alone
  std::string metrics_token;    ///< file of the token that readers of metrics show; "" = none
  CoreOptions core;
};

/// One running scheduler. Lives on its loop's thread; the journal's writer is the only other thread
/// of ours.
class Server {
 public:
  /// Locks the state folder, replays the journal, then listens: no peer is answered before the
  /// replay is complete. FailedPrecondition when another scheduler has the folder; otherwise the
  /// errors of ServerSocket and Journal.
  static StatusOr<std::unique_ptr<Server>> Open(control::EventLoop& loop,
                                                const ServerOptions& options);
  virtual ~Server() = default;

  virtual const std::string& address() const = 0;
  /// A stop will follow: grants nothing more and tells trainers, which have 1 s to leave.
  virtual void AnnounceStop() = 0;
  /// On a signal: announces it, and ends the loop once they and the agents that drain have left,
  /// at once when called again. A trainer that does not leave is waited for 1 s.
  virtual void Stop() = 0;
  /// OK while it runs and after an orderly end; otherwise the cause of its end (the journal's
  /// failure).
  virtual Status outcome() const = 0;
};

}  // namespace patchbay::scheduler
