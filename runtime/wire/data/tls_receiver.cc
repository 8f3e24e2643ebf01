// The trainer's end of delivery over TLS: a thread a sender, which reads into the slot.

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/os/dropped_peers.h"
#include "runtime/wire/data/remote_delivery.h"
#include "runtime/wire/data/tls_listener.h"

namespace patchbay::data {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;  ///< between two steps of a checksum
constexpr std::size_t kDropBytes = 16 << 10;  ///< part of a refused shard that is read at once

/// The cause that ended the reading of a shard. Without this, a connection that ends inside one
/// would read like one that ends between two.
Status WhyItEnded(const TlsChannel& channel, Status ended) {
  if (!absl::IsUnavailable(ended) || channel.IsShut()) return ended;
  return Aborted("the connection ended inside a shard");
}

class TlsReceiver final : public RemoteReceiver {
 public:
  TlsReceiver(Ring& ring, const Options& options) : ring_(ring), options_(options) {}
  ~TlsReceiver() override;

  Status Open();
  const std::string& address() const override { return address_; }
  bool EndTransfer(const ShardId& shard, const LeaseNumber& lease) override;
  std::uint64_t bytes_counted() const override { return bytes_counted_; }
  std::uint64_t connections_dropped() const override { return dropped_.total(); }
  std::vector<DroppedPeer> dropped_peers() const override;
  std::string Transport() const override;

 private:
  using Ranges = std::vector<std::span<std::byte>>;
  /// A connection whose peer has proven the key, and its thread.
  struct Sender {
    std::unique_ptr<TlsChannel> channel;
    std::string peer;                      ///< its address
    std::optional<ShardHeader> receiving;  ///< guarded by mu_
    bool ended = false;                    ///< guarded by mu_; the channel is gone then
    std::thread thread;
  };

  void Admit(std::unique_ptr<TlsChannel> channel);
  void JoinEnded();
  void Serve(Sender& sender);
  Status ReceiveShard(Sender& sender);
  Status ReadShard(Sender& sender, const ShardHeader& header, std::int64_t deadline_ms,
                   Status* connection);
  StatusOr<ShardHeader> ReadHeader(TlsChannel& channel, std::int64_t deadline_ms) const;
  StatusOr<Ranges> BeginAll(ShardHeader header);
  StatusOr<bool> ReadRanges(TlsChannel& channel, ShardHeader header, const Ranges& ranges,
                            std::int64_t deadline_ms, Status* connection);
  Status DropPayload(TlsChannel& channel, const ShardHeader& header, std::int64_t deadline_ms);
  void SetReceiving(Sender& sender, std::optional<ShardHeader> header);

  Ring& ring_;
  const Options options_;
  std::string address_;
  std::atomic<std::uint64_t> bytes_counted_ = 0;
  DroppedPeers dropped_;  ///< connections
  DroppedPeers refused_;  ///< shards, of senders that stay
  std::atomic<bool> has_received_ = false;
  mutable std::mutex mu_;
  std::list<Sender> senders_;  ///< guarded by mu_; a channel is its thread's, but for Shut
  std::unique_ptr<TlsListener> listener_;
};

TlsReceiver::~TlsReceiver() {
  listener_.reset();  // admits nobody from here on
  {
    const std::lock_guard lock(mu_);
    for (Sender& sender : senders_) {
      if (sender.channel != nullptr) sender.channel->Shut();
    }
  }
  for (Sender& sender : senders_) sender.thread.join();
}

Status TlsReceiver::Open() {
  PB_RETURN_IF_ERROR(CheckNetwork(options_.network));
  PB_ASSIGN_OR_RETURN(const TlsKey key, DeriveTlsKey(options_.secret, options_.trainer));
  PB_ASSIGN_OR_RETURN(auto context, TlsContext::Make(TlsContext::Side::kTrainer, key));
  TlsListener::Options listening;
  listening.address = options_.network.address;
  listening.ports = options_.network.ports;
  listening.proof_deadline_ms = options_.proof_deadline_ms;
  PB_ASSIGN_OR_RETURN(
      listener_,
      TlsListener::Open(
          listening, std::move(context),
          [this](std::unique_ptr<TlsChannel> channel) { Admit(std::move(channel)); }, dropped_));
  address_ = StrCat(kTlsScheme, listener_->address(), "/", options_.trainer.incarnation);
  return absl::OkStatus();
}

std::vector<DroppedPeer> TlsReceiver::dropped_peers() const {
  std::vector<DroppedPeer> peers = dropped_.List();
  for (DroppedPeer& peer : refused_.List()) peers.push_back(std::move(peer));
  return peers;
}

std::string TlsReceiver::Transport() const {
  return has_received_ ? StrCat("tls/", kTlsSuite) : std::string();
}

void TlsReceiver::Admit(std::unique_ptr<TlsChannel> channel) {
  JoinEnded();
  const std::lock_guard lock(mu_);
  std::string peer = PeerAddress(channel->socket());
  if (senders_.size() >= options_.senders_max) {
    dropped_.Count(peer, "too many senders");
    return LogWarning(StrCat("let go of sender ", peer, ": too many senders"));
  }
  Sender& sender = senders_.emplace_back();
  sender.peer = std::move(peer);
  sender.channel = std::move(channel);
  try {
    sender.thread = std::thread([this, &sender] { Serve(sender); });
  } catch (const std::system_error& error) {
    dropped_.Count(sender.peer, "no thread is left for it");
    LogWarning(StrCat("let go of sender ", sender.peer, ": no thread for it: ", error.what()));
    senders_.pop_back();
  }
}

void TlsReceiver::JoinEnded() {
  std::list<Sender> ended;
  {
    const std::lock_guard lock(mu_);
    for (auto it = senders_.begin(); it != senders_.end();) {
      const auto at = it++;
      if (at->ended) ended.splice(ended.end(), senders_, at);
    }
  }
  for (Sender& sender : ended) sender.thread.join();
}

void TlsReceiver::Serve(Sender& sender) {
  Status status;
  while (status.ok()) status = ReceiveShard(sender);
  LogDebug(StrCat("a sender's connection ended: ", MessageOf(status)));
  if (!absl::IsUnavailable(status)) {  // its data was wrong, or came too slowly
    dropped_.Count(sender.peer, MessageOf(status));
    LogWarning(StrCat("dropped the connection of sender ", sender.peer, ": ", MessageOf(status)));
  }
  const std::lock_guard lock(mu_);
  sender.channel.reset();  // closes
  sender.ended = true;
}

/// One shard from header to answer. An error ends the connection; a refusal does not.
Status TlsReceiver::ReceiveShard(Sender& sender) {
  TlsChannel& channel = *sender.channel;
  PB_RETURN_IF_ERROR(channel.AwaitInput(kNoDeadline));
  const std::int64_t deadline_ms = SteadyNowMs() + options_.shard_deadline_ms;
  PB_ASSIGN_OR_RETURN(const ShardHeader header, ReadHeader(channel, deadline_ms));
  Status connection;
  const Status outcome = ReadShard(sender, header, deadline_ms, &connection);
  PB_RETURN_IF_ERROR(WhyItEnded(channel, connection));
  if (!outcome.ok()) LogDebug(Describe(outcome));
  if (absl::IsFailedPrecondition(outcome)) refused_.Count(sender.peer, "the lease was void");
  if (absl::IsDataLoss(outcome)) refused_.Count(sender.peer, "a shard's checksum was wrong");
  has_received_ = true;
  return channel.Write(EncodeShardAnswer(header.lease, outcome), deadline_ms);
}

/// Reads the shard's ranges into the slot, or discards them when it is refused. Returns the shard's
/// outcome; `connection` is OK if the connection stays usable.
Status TlsReceiver::ReadShard(Sender& sender, const ShardHeader& header, std::int64_t deadline_ms,
                              Status* connection) {
  SetReceiving(sender, header);  // before the range is taken: a fence must find it
  const StatusOr<Ranges> ranges = BeginAll(header);
  Status outcome = ranges.status();
  if (ranges.ok()) {
    const auto counted = ReadRanges(*sender.channel, header, *ranges, deadline_ms, connection);
    outcome = counted.status();
    if (counted.ok() && *counted) bytes_counted_ += ring_.layout().BytesOf(header.grant.count);
  } else {
    *connection = DropPayload(*sender.channel, header, deadline_ms);
  }
  SetReceiving(sender, std::nullopt);
  return outcome;
}

/// A header that this stream can have; a connection that sends another is of no use.
StatusOr<ShardHeader> TlsReceiver::ReadHeader(TlsChannel& channel, std::int64_t deadline_ms) const {
  std::array<std::byte, kShardHeaderBytes> bytes;
  Status begun = channel.Read(std::span(bytes).first<1>(), deadline_ms);
  if (channel.HoldsPartOfARecord()) begun = WhyItEnded(channel, std::move(begun));
  PB_RETURN_IF_ERROR(begun);
  PB_RETURN_IF_ERROR(WhyItEnded(channel, channel.Read(std::span(bytes).subspan<1>(), deadline_ms)));
  StatusOr<ShardHeader> header = DecodeShardHeader(bytes, options_.secret);
  if (header.ok()) {
    const std::uint32_t capacity = Capacity(ring_.options().geometry);
    const bool fits = header->array == kEveryArray && header->arrays == ring_.layout().arrays() &&
                      header->landing == Landing::kHost &&
                      header->stream == options_.trainer.stream && header->grant.count > 0 &&
                      header->grant.count <= capacity;
    if (fits) return header;
    header = InvalidArgument("receive shard: its header does not match the layout of this stream");
  }
  ring_.CountRefusal();
  return header.status();
}

/// The ranges of all arrays, or of none.
StatusOr<TlsReceiver::Ranges> TlsReceiver::BeginAll(ShardHeader header) {
  Ranges ranges;
  for (std::uint8_t i = 0; i < header.arrays; ++i) {
    header.array = i;
    const auto range = ring_.BeginReceive(header);
    if (range.ok()) {
      ranges.push_back(*range);
      continue;
    }
    for (header.array = 0; header.array < i; ++header.array) {
      ring_.FinishReceive(header, range.status()).status().IgnoreError();
    }
    return range.status();
  }
  return ranges;
}

/// Reads into the slot. The checksum is computed over the bytes just received: they are still in
/// the cache, and the sender continues meanwhile.
Status ReadRange(TlsChannel& channel, std::span<std::byte> range, std::int64_t deadline_ms,
                 std::uint32_t* crc32c) {
  while (!range.empty()) {
    const auto piece = range.first(std::min(range.size(), kReadBytes));
    PB_RETURN_IF_ERROR(channel.Read(piece, deadline_ms));
    *crc32c = Crc32c(piece, *crc32c);
    range = range.subspan(piece.size());
  }
  return absl::OkStatus();
}

/// Reads into the slot and always gives every range back. Returns whether the shard counted;
/// `connection` is OK if the connection stays usable.
StatusOr<bool> TlsReceiver::ReadRanges(TlsChannel& channel, ShardHeader header,
                                       const Ranges& ranges, std::int64_t deadline_ms,
                                       Status* connection) {
  StatusOr<bool> counted = false;
  const std::int64_t begun_ns = SteadyNowNs();
  for (std::uint8_t i = 0; i < header.arrays; ++i) {
    header.array = i;
    std::uint32_t crc32c = 0;
    if (connection->ok()) *connection = ReadRange(channel, ranges[i], deadline_ms, &crc32c);
    Status landed = *connection;
    if (landed.ok() && crc32c != header.crc32c[i]) {
      landed = DataLoss("receive shard: ", header.shard.ToString(), " array ", int{i},
                        ": crc32c mismatch");
    }
    header.times.transfer_us = ToStageUs(SteadyNowNs() - begun_ns);
    StatusOr<bool> finished = ring_.FinishReceive(header, landed);
    if (!landed.ok()) finished = landed;
    if (counted.ok()) counted = std::move(finished);
  }
  return counted;
}

Status TlsReceiver::DropPayload(TlsChannel& channel, const ShardHeader& header,
                                std::int64_t deadline_ms) {
  std::array<std::byte, kDropBytes> dropped;
  for (std::size_t i = 0; i < header.arrays; ++i) {
    std::uint64_t left = header.grant.count * ring_.layout().PatchBytes(i);
    while (left > 0) {
      const std::size_t piece = std::min<std::uint64_t>(left, dropped.size());
      PB_RETURN_IF_ERROR(channel.Read(std::span(dropped).first(piece), deadline_ms));
      left -= piece;
    }
  }
  return absl::OkStatus();
}

void TlsReceiver::SetReceiving(Sender& sender, std::optional<ShardHeader> header) {
  const std::lock_guard lock(mu_);
  sender.receiving = std::move(header);
}

bool TlsReceiver::EndTransfer(const ShardId& shard, const LeaseNumber& lease) {
  if (!ring_.Receiving(shard, lease)) return true;
  const std::lock_guard lock(mu_);
  for (Sender& sender : senders_) {
    const bool fenced = sender.receiving.has_value() && sender.receiving->shard == shard &&
                        sender.receiving->lease <= lease;
    if (fenced) sender.channel->Shut();
  }
  return false;
}

}  // namespace

StatusOr<std::unique_ptr<RemoteReceiver>> StartTlsReceiver(Ring& ring,
                                                           const RemoteReceiver::Options& options) {
  auto receiver = std::make_unique<TlsReceiver>(ring, options);
  PB_RETURN_IF_ERROR(receiver->Open());
  return std::unique_ptr<RemoteReceiver>(std::move(receiver));
}

}  // namespace patchbay::data
