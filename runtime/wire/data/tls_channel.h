// TLS 1.3 with an external pre-shared key and ECDHE over one TCP connection. OpenSSL stays in this
// header's .cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "runtime/wire/data/shard_header.h"
#include "runtime/wire/data/sockets.h"

struct bio_st;

struct ssl_ctx_st;
struct ssl_st;

namespace patchbay::data {

/// One life of one trainer.
struct TrainerIdentity {
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  /// "77|0|1311768467294899695": the identity of the pre-shared key, visible on the wire.
  std::string Text() const;
  bool operator==(const TrainerIdentity&) const = default;
};

/// An external pre-shared key of TLS 1.3 with SHA-256, and its identity.
struct TlsKey {
  std::string identity;
  std::array<unsigned char, 32> bytes{};
};
/// HKDF-SHA256 of the stream secret for that trainer: a sender that knows another stream, or a
/// former life of the trainer, has another key.
StatusOr<TlsKey> DeriveTlsKey(const StreamSecret& secret, const TrainerIdentity& trainer);

// OpenSSL's source and sink: a non-blocking socket, with one system call a record or fewer, no copy
// of received bytes, and no SIGPIPE in a user's process.

/// Sealed bytes that wait to be sent at once: eight records.
inline constexpr std::size_t kWriteBufferBytes = 128 << 10;

/// Does not own the descriptor; null when there is no memory. Writes are sent when
/// kWriteBufferBytes have accumulated, or when the BIO is flushed.
bio_st* MakeSocketBio(int fd);

/// The only suite spoken, with X25519 or P-256; no certificate, ticket or early data.
inline constexpr const char* kTlsSuite = "TLS_AES_128_GCM_SHA256";
/// The most records under one key: half the number that RFC 8446 section 5.5 allows for AES-GCM.
inline constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 24;

/// The state that the connections of one key share. Immutable, so threads may share it.
class TlsContext {
 public:
  enum class Side { kTrainer, kSender };
  static StatusOr<std::shared_ptr<const TlsContext>> Make(Side side, const TlsKey& key);
  ~TlsContext();

  Side side() const { return side_; }
  const TlsKey& key() const { return key_; }
  ssl_ctx_st* ctx() const { return ctx_; }

 private:
  TlsContext(Side side, const TlsKey& key) : side_(side), key_(key) {}
  const Side side_;
  const TlsKey key_;
  ssl_ctx_st* ctx_ = nullptr;
};

/// One connection, used by one thread at a time; Shut may be called from any thread.
class TlsChannel {
 public:
  /// Owns the non-blocking `socket`. `records_per_key` is kRecordsPerKey but in tests.
  static StatusOr<std::unique_ptr<TlsChannel>> Make(std::shared_ptr<const TlsContext> context,
                                                    UniqueFd socket,
                                                    std::uint64_t records_per_key = kRecordsPerKey);
  ~TlsChannel();

  /// A step that does not block: true when the peer has proven the key; false when it waits for
  /// `wait_events()` (POLLIN or POLLOUT). PermissionDenied when the peer has not that key.
  StatusOr<bool> Handshake();
  short wait_events() const { return wait_events_; }

  /// Waits until something came. Unavailable when the connection ended.
  Status AwaitInput(std::int64_t deadline_ms);
  /// Reads exactly out.size() bytes into `out`. DeadlineExceeded; DataLoss for bytes not sealed by
  /// the key; Unavailable when the connection ended, announced by the peer or not. After an error
  /// the connection is unusable.
  Status Read(std::span<std::byte> out, std::int64_t deadline_ms);
  /// After a Read that failed: whether the beginning of a record had arrived.
  bool HoldsPartOfARecord() const;
  /// The kernel has all of it when this returns.
  Status Write(std::span<const std::byte> bytes, std::int64_t deadline_ms);

  /// Ends the connection: waiting calls fail, running ones leave their buffer at the next record.
  /// Thread-safe.
  void Shut();
  bool IsShut() const { return shut_; }
  /// The peer has gone, as far as the kernel has heard.
  bool PeerGone() const;
  int socket() const { return socket_.get(); }
  /// Times the key for sending was changed.
  std::uint64_t key_updates() const { return key_updates_; }

 private:
  TlsChannel(std::shared_ptr<const TlsContext> context, UniqueFd socket,
             std::uint64_t records_per_key)
      : context_(std::move(context)),
        socket_(std::move(socket)),
        records_per_key_(records_per_key) {}
  Status Await(int result, const char* doing, std::int64_t deadline_ms);
  Status RenewKey(std::size_t bytes);
  Status Flush(std::int64_t deadline_ms);

  const std::shared_ptr<const TlsContext> context_;
  const UniqueFd socket_;
  const std::uint64_t records_per_key_;
  ssl_st* ssl_ = nullptr;
  std::atomic<bool> shut_ = false;
  short wait_events_ = 0;
  std::uint64_t records_ = 0;  ///< sent under the key in use
  std::uint64_t key_updates_ = 0;
};

}  // namespace patchbay::data
