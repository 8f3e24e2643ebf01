// The trainer's side of mapped delivery: passes the ring's memfd to worker processes of the same
// node over an abstract Unix socket, counts the shards that they report, and fences them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/wire/data/exit_watch.h"
#include "runtime/wire/data/ring.h"
#include "runtime/wire/data/shard_header.h"

namespace patchbay::data {

inline constexpr std::int64_t kProofDeadlineMs = 2'000;  ///< then a fenced batch moves to a spare
inline constexpr std::size_t kMaxPeers = 1024;           ///< worker processes per ring
inline constexpr std::int64_t kGreetingDeadlineMs = 5'000;

/// A request to make sure that the holder of `lease` can no longer write.
struct FenceRequest {
  ShardId shard;
  LeaseNumber lease;
  /// 0 = remote, or of a former scheduler: then no process of this host holds the lease any more
  /// (notes/0003).
  std::int64_t worker_pid = 0;
  Grant grant;
};
/// The end of a FenceRequest: the batch's slot is safe from the holder, or `status` is an error.
struct FenceOutcome {
  FenceRequest request;
  bool already_counted = false;
  SlotReport row;  ///< the slot now filling the batch
  Status status;   ///< ResourceExhausted, naming the process: the stream cannot go on
};

/// Runs a thread of its own. Peers are admitted when their uid is the trainer's (or root), they
/// prove the stream secret, and their lease is not from a scheduler before AdmitSince's. From then
/// on they are watched until the kernel reports their death, whatever happens to the socket.
class RingServer {
 public:
  struct Options {
    StreamSecret secret{};
    std::uint64_t stream = 0;
    std::int64_t proof_deadline_ms = kProofDeadlineMs;
    ExitProof proof = ExitProof::kPidfd;  ///< the best to use; a kernel may offer less
    /// The most connected workers, and the most that were fenced before they connected. Fewer only
    /// in tests.
    std::size_t peers_max = kMaxPeers;
    /// Time in which a process that connected has to prove the secret.
    std::int64_t greeting_deadline_ms = kGreetingDeadlineMs;
    /// For a remote holder: true once no transfer of the shard runs under that lease or an older
    /// one. Called from the server's thread about every 20 ms until it is true or the deadline
    /// passes.
    std::function<bool(const ShardId&, const LeaseNumber&)> remote_gone;
    /// For device slots: whether a process that ended `ended_ms` ago can no longer write. Null:
    /// asks memory::GpuProcesses. Called about every 20 ms.
    std::function<bool(pid_t pid, std::int64_t ended_ms)> left_device;
    /// Called once per Fence, from the server's thread.
    std::function<void(const FenceOutcome&)> fenced;
  };
  /// Binds a fresh random abstract name and starts the thread. `ring` must outlive the server.
  static StatusOr<std::unique_ptr<RingServer>> Start(Ring& ring, Options options);
  /// Joins the thread and closes every socket. With device slots it waits until every worker that
  /// was given them has hung up or ended, up to proof_deadline_ms; where one has not, the device
  /// memory is kept until this process ends (notes/0004).
  virtual ~RingServer() = default;

  /// Without the leading NUL.
  virtual const std::string& socket_name() const = 0;
  /// Returns at once; Options::fenced has the outcome. From the return on nothing is counted under
  /// the lease.
  virtual void Fence(const FenceRequest& request) = 0;
  /// Worker processes that hold the mapping and are not proven dead. A process may be listed twice.
  virtual std::vector<std::int64_t> Holders() const = 0;
  /// Returns Holders, and admits no further ones: workers that ask for the ring wait for
  /// AdmitSince.
  virtual std::vector<std::int64_t> StopAdmitting() = 0;
  /// From now on a process is given the ring for leases of that scheduler incarnation and of later
  /// ones. A server that was just started admits for any.
  virtual void AdmitSince(std::uint32_t incarnation) = 0;
};

}  // namespace patchbay::data
