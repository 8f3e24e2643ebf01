// The agent: offers its node to the scheduler, starts its workers, watches them and kills them when
// told to. It does no task work, so that its loop is always free to do so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/event_loop.h"
#include "runtime/wire/control/keys.h"
#include "runtime/wire/control/parent_pipe.h"
#include "runtime/wire/control/session.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/process/child_process.h"

namespace patchbay::workers {

// One agent at a time for a node's key on one machine: two would take the node from each other for
// ever, as the scheduler takes the later one for a restart of the earlier.

/// The right of this process to use a key on this machine, as this user. It ends with the process,
/// so that a killed agent does not block the next. Lives on its loop's thread.
class KeyClaim {
 public:
  /// The claim is unique within `host_identity`; the scheduler distinguishes agents of other hosts.
  /// `loop` must outlive it.
  KeyClaim(control::EventLoop& loop, const control::KeyFile& key, const std::string& host_identity);
  ~KeyClaim();
  KeyClaim(const KeyClaim&) = delete;
  KeyClaim& operator=(const KeyClaim&) = delete;

  /// AlreadyExists, naming the process, as long as another agent of this user has the claim. OK
  /// once this agent has it, and where the kernel does not support such claims. Does not block.
  Status Take();

 private:
  control::EventLoop& loop_;
  const std::string key_name_, socket_name_;
  UniqueFd listener_;
  control::EventLoop::Id watch_ = 0;
};

struct AgentOptions {
  control::KeyFile key;
  std::string key_path;        ///< as the workers get it; may be /proc/self/fd/N
  std::string worker_program;  ///< path of patchbay-worker
  std::string host_identity;
  std::uint32_t cpus = 1;  ///< CPU workers, one per core
  std::vector<protocol::Gpu> gpus;
  std::uint64_t memory_bytes = 0;         ///< memory of the machine
  std::uint64_t worker_memory_bytes = 0;  ///< limit of each worker; 0 = none
  std::string state_folder;
  std::string files;  ///< FileSharing of the workers as text; "" = none
  bool may_take_burned_in = false;
  std::string functions;  ///< FunctionPolicy of the workers as text; "" = none
  std::string data_policy = "tls", data_address;
  TimeMs drain_ms = 20'000;  ///< time for workers to finish before SIGKILL
  int ready_fd = -1;         ///< taken over, see control::ParentPipe
};

/// Lives on its loop's thread, which must be the program's main thread (see StartChild).
class Agent {
 public:
  static StatusOr<std::unique_ptr<Agent>> Open(control::EventLoop& loop,
                                               const AgentOptions& options);
  ~Agent();

  /// On a signal to stop: tells the scheduler, lets the workers finish, stops the loop when the
  /// last one is gone. The second call with the same `by_parent` kills the remaining workers. A
  /// call with the other value is the same stop: a signal can reach all processes and also be
  /// passed on by the parent.
  void Stop(bool by_parent);
  /// Call on SIGCHLD.
  void Reap();
  /// Why the loop was stopped. PermissionDenied: the cluster refuses the node's key, or another
  /// cluster has its address. AlreadyExists: the key is in use on another machine, or by another
  /// agent on this one. Aborted: a newer agent has this node. FailedPrecondition: none of its
  /// workers can start. Cancelled: Stop was called.
  const Status& outcome() const { return outcome_; }

 private:
  struct Worker;

  void Drain();
  Agent(control::EventLoop& loop, const AgentOptions& options);
  Status Start();
  void Register();
  void OnLost(const Status& why);
  /// Ends the agent when it was refused for too long, otherwise asks again in a while.
  void OnRefused(const Status& why);
  /// Since it was first refused; a registration starts that over.
  bool RefusedForLong();
  void End(Status why);
  void OnRegistered(const protocol::AgentRegistered& registered);
  void OnFact(protocol::Body body);
  void StartWorker(Worker& worker);
  Status Launch(Worker& worker);
  std::vector<std::string> CommandOf(const Worker& worker) const;
  void ReadHeartbeats(Worker& worker);
  void StopReading(Worker& worker);
  void KillFrozen();
  void OnExit(Worker& worker, int wait_status);
  bool LeavesOut(const Worker& worker);
  bool NoneCanStart() const;
  void ReportExit(const protocol::WorkerExited& exited);
  void Kill(const protocol::KillWorker& kill);
  void KillAll();
  void StopWhenEmpty();

  control::EventLoop& loop_;
  AgentOptions options_;
  control::ParentPipe parent_;
  KeyClaim claim_;
  const std::uint64_t incarnation_;
  std::vector<Worker> workers_;
  std::unique_ptr<control::Session> session_;
  std::uint32_t scheduler_incarnation_ = 0;
  int reports_pending_ = 0;  ///< WorkerExited without an answer yet
  TimeMs refused_since_ = -1;
  std::string refusal_said_;  ///< the last one in the log
  TimeMs refusal_said_at_ = 0;
  Status outcome_;
  control::EventLoop::Id register_again_ = 0;  ///< the one timer for it
  bool registering_ = false, registered_once_ = false, draining_ = false;
  bool any_started_ = false;    ///< a worker, once
  std::array<int, 2> stops_{};  ///< stop signals: of strangers, of the parent
};

}  // namespace patchbay::workers
