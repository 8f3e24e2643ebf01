// Delivery between nodes: UCX active messages with rendezvous, straight into the slot. The trainer
// looks at the header before it takes a byte; a send that completed proves nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "runtime/data/network_policy.h"
#include "runtime/data/ring.h"
#include "runtime/data/shard_header.h"

namespace patchbay::data {

/// Trainer side. One thread, one UCP worker, event driven.
class RemoteReceiver {
 public:
  struct Options {
    Network network;
    StreamSecret secret{};
    std::uint64_t stream = 0;
  };
  /// Listens on a fresh port of the network's address. FailedPrecondition when the network policy
  /// forbids it (see LimitsOf). `ring` must outlive the receiver.
  static StatusOr<std::unique_ptr<RemoteReceiver>> Start(Ring& ring, const Options& options);
  /// Cancels what runs, waits for every request to complete, joins the thread.
  virtual ~RemoteReceiver() = default;

  /// "ip:port", for TrainerEndpoint::ucx_address.
  virtual const std::string& address() const = 0;
  /// The shard is fenced up to `lease`: force-closes the endpoint a running transfer of it came
  /// over. True when none runs (any more). Thread-safe, does not block.
  virtual bool EndTransfer(const ShardId& shard, const LeaseNumber& lease) = 0;
  /// Bytes that came this way and counted.
  virtual std::uint64_t bytes_counted() const = 0;
  /// What UCX chose, for reports: "tcp/lo"; empty before the first shard.
  virtual std::string Transport() const = 0;
};

/// Worker side. One thread, one UCP worker, an endpoint per trainer address, made when needed.
class RemoteSender {
 public:
  struct Options {
    Network network;
    std::int64_t timeout_ms = 10'000;  ///< of one shard; then its endpoint is closed by force
  };
  static StatusOr<std::unique_ptr<RemoteSender>> Start(const Options& options);
  virtual ~RemoteSender() = default;

  /// A shard's bytes of each array, in layout order.
  using Payload = std::span<const std::span<const std::byte>>;
  /// Computes each array's crc32c (unless the header has it), sends one message an array, and waits
  /// until the payload may be reused. Thread-safe.
  /// OK means only that: the trainer decides whether the shard counts. Unavailable when the peer is
  /// gone or did not take it in time, InvalidArgument when payload and header differ in arrays.
  virtual Status Send(const std::string& address, const StreamSecret& secret, ShardHeader header,
                      Payload payload) = 0;
  /// Closes the endpoint to a trainer that went away.
  virtual void Forget(const std::string& address) = 0;
  virtual std::string Transport() const = 0;
};

}  // namespace patchbay::data
