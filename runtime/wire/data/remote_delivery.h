// Delivery between nodes, straight into the slot: TLS 1.3 over TCP, or UCX active messages on a
// declared RDMA fabric. The trainer looks at the header before it takes a byte; a send that
// completed proves nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/os/dropped_peers.h"
#include "runtime/wire/data/network_policy.h"
#include "runtime/wire/data/ring.h"
#include "runtime/wire/data/shard_header.h"
#include "runtime/wire/data/tls_channel.h"

namespace patchbay::data {

/// UCX: the active message that carries one array of a shard: header = ShardHeader, which names it;
/// payload by rendezvous.
inline constexpr unsigned kShardMessageId = 7;
/// UCX: the first message over an endpoint, by which a sender introduces itself. Its payload:
///   0 proof: HMAC-SHA256 of the address under the stream secret | 32 address of the sender's UCX
///   worker.
/// The trainer takes shards from such senders alone.
inline constexpr unsigned kHelloMessageId = 8;
std::vector<std::byte> EncodeHello(std::span<const std::byte> ucx_address,
                                   const StreamSecret& secret);
/// The address: a view into `hello`. PermissionDenied when the proof is not of this secret.
StatusOr<std::span<const std::byte>> DecodeHello(std::span<const std::byte> hello,
                                                 const StreamSecret& secret);

/// TLS: a shard is its header (kShardHeaderBytes, of every array), then the bytes of its ranges in
/// layout order; their sizes follow from layout and count. The trainer answers each with
///   0 magic u32 | 4 status code u32 | 8 lease counter u64, little-endian,
/// 0 = delivered. A refused shard's bytes are read and dropped, so that the connection stays
/// usable.
inline constexpr std::size_t kShardAnswerBytes = 16;
std::array<std::byte, kShardAnswerBytes> EncodeShardAnswer(const LeaseNumber& lease,
                                                           const Status& outcome);
/// The trainer's answer on the shard under `lease`; Unavailable when the bytes are no answer to it.
Status DecodeShardAnswer(std::span<const std::byte, kShardAnswerBytes> bytes,
                         const LeaseNumber& lease);

/// Schemes of a trainer's address, by transport: "tls://10.0.0.7:4711/INCARNATION", "ucx://HEX".
inline constexpr std::string_view kTlsScheme = "tls://", kUcxScheme = "ucx://";

inline constexpr std::size_t kMaxSenders = 1024;  ///< connections a trainer takes shards over

/// The trainer's side. Receives on threads of its own.
class RemoteReceiver {
 public:
  struct Options {
    Network network;
    StreamSecret secret{};
    TrainerIdentity trainer;
    /// Time in which a connection has to prove the key (TLS).
    std::int64_t proof_deadline_ms = 5'000;
    /// The deadline of one shard, from the first byte of its header to its answer (TLS); a
    /// connection that misses it is dropped. Longer than a sender's deadline.
    std::int64_t shard_deadline_ms = 15'000;
    std::size_t senders_max = kMaxSenders;  ///< fewer only in tests
  };
  /// Listens at the network's address. FailedPrecondition when the network policy forbids it (see
  /// CheckNetwork, LimitsOf). `ring` must outlive the receiver.
  static StatusOr<std::unique_ptr<RemoteReceiver>> Start(Ring& ring, const Options& options);
  /// Ends running transfers, waits until every range is given back, joins the threads.
  virtual ~RemoteReceiver() = default;

  /// For TrainerEndpoint::remote_address. After kTlsScheme: numeric address and port, and the
  /// trainer's incarnation, which is part of the key. After kUcxScheme: the name of a UCX worker,
  /// which is no socket address.
  virtual const std::string& address() const = 0;
  /// The shard is fenced up to `lease`: ends the connection of a running transfer of it. True when
  /// no transfer runs (any more), so that the receiving thread has left the range. Thread-safe,
  /// does not block.
  virtual bool EndTransfer(const ShardId& shard, const LeaseNumber& lease) = 0;
  /// Bytes that came this way and counted.
  virtual std::uint64_t bytes_counted() const = 0;
  /// Connections that were dropped: no proof of the key, or bytes that were no shard.
  virtual std::uint64_t connections_dropped() const = 0;
  /// Peers whose connections were dropped, and whose shards were refused because their lease is
  /// void.
  virtual std::vector<DroppedPeer> dropped_peers() const = 0;
  /// The transport of the shards, for reports: "tls/TLS_AES_128_GCM_SHA256", "rc/mlx5_0"; empty
  /// before the first.
  virtual std::string Transport() const = 0;
};

/// The trainer a shard is for, as the control plane names it.
struct RemoteTarget {
  std::string address;  ///< RemoteReceiver::address
  StreamSecret secret{};
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  bool operator==(const RemoteTarget&) const = default;
};

/// Worker side. A connection per trainer, made when needed.
class RemoteSender {
 public:
  struct Options {
    Network network;                   ///< its address is UCX's alone
    std::int64_t timeout_ms = 10'000;  ///< limit for one shard; then its connection is closed
    std::uint64_t records_per_key = kRecordsPerKey;  ///< fewer only in tests
  };
  static StatusOr<std::unique_ptr<RemoteSender>> Start(const Options& options);
  virtual ~RemoteSender() = default;

  /// A shard's bytes of each array, in layout order.
  using Payload = std::span<const std::span<const std::byte>>;
  /// Computes each array's crc32c (unless the header has it), sends the shard, and waits until the
  /// payload may be reused. Thread-safe.
  /// OK means only that: the trainer decides whether the shard counts. Unavailable when the peer is
  /// gone or did not take it in time, FailedPrecondition or AlreadyExists when it refused the
  /// grant, InvalidArgument when payload and header differ in arrays.
  virtual Status Send(const RemoteTarget& target, ShardHeader header, Payload payload) = 0;
  /// Closes the connections to a trainer that went away.
  virtual void Forget(const std::string& address) = 0;
  virtual std::string Transport() const = 0;
};

StatusOr<std::unique_ptr<RemoteReceiver>> StartTlsReceiver(Ring& ring,
                                                           const RemoteReceiver::Options& options);
StatusOr<std::unique_ptr<RemoteReceiver>> StartUcxReceiver(Ring& ring,
                                                           const RemoteReceiver::Options& options);
std::unique_ptr<RemoteSender> MakeTlsSender(const RemoteSender::Options& options);
StatusOr<std::unique_ptr<RemoteSender>> StartUcxSender(const RemoteSender::Options& options);

/// Sets each array's crc32c unless the header has it. InvalidArgument when payload and header
/// differ in arrays.
Status SealHeader(ShardHeader& header, RemoteSender::Payload payload);
/// "10.0.0.7:4711/5" as address and incarnation. InvalidArgument for anything else.
struct TlsAddress {
  std::string host_port;
  std::uint64_t incarnation = 0;
};
StatusOr<TlsAddress> ParseTlsAddress(const std::string& text);
/// The rest of the address after the scheme. Unavailable, naming both, when the trainer's address
/// has another one.
StatusOr<std::string> AddressUnder(std::string_view scheme, const std::string& address);

}  // namespace patchbay::data
