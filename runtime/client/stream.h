// A trainer's end of a stream: attach, take batches in order, give them back.
//
//   PB_ASSIGN_OR_RETURN(auto stream, Stream::Attach(options));
//   while (...) {
//     PB_ASSIGN_OR_RETURN(Batch batch, stream->Next());   // already in memory if ready
//     Train(batch.array("image"));
//   }                                                     // ~Batch gives the slot back
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/client/resume_token.h"
#include "runtime/core/dtype.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/memory/gpu.h"
#include "runtime/model/stream/batch_layout.h"
#include "runtime/model/stream/position.h"  // wide: options, batches and stream of a trainer
#include "runtime/model/stream/stage_times.h"
#include "runtime/model/stream/stream_geometry.h"
#include "runtime/wire/control/session.h"
#include "runtime/wire/data/network_policy.h"
#include "runtime/wire/data/ring.h"
#include "runtime/wire/data/slot_table.h"

namespace patchbay::client {

enum class SlotMemory : std::uint8_t { kHost, kDevice };

/// One array of a batch: shape (patches, ...). A view; valid as long as the batch keeps its slot.
struct BatchArray {
  std::string_view name;
  ArrayMemory memory = ArrayMemory::kStream;  ///< kStream: host or device, as attached
  TensorView tensor;
};

struct StreamOptions {
  std::string key_file;  ///< as Client::Connect; unused by AttachOver
  JobId job = 0;         ///< the stream job; its root task must be done
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  Position first;  ///< position of a resume token, or {0, 0}; epochs end at kMaxEpoch
  /// Checked against the plan before anything is made; `first` is its position then.
  std::optional<ResumeToken> resume;
  std::uint32_t prefetch = 2;  ///< larger = more memory and more slack for uneven shards
  std::uint32_t spares = 1;    ///< larger = more frozen workers survived at once
  SlotMemory memory = SlotMemory::kHost;
  int device = 0;             ///< CUDA ordinal, for device slots
  data::Network network;      ///< how workers of other nodes may deliver; kNone = they may not
  std::string host_identity;  ///< identity of this node; empty = found out
  std::string node;           ///< its name in the cluster; empty = the host name
  std::int64_t attach_timeout_ms = 30'000;
  /// Called while attaching: once it returns false, Attach ends with Cancelled. Called while
  /// detaching, on another thread: once it returns false, there is hardly any wait for the
  /// scheduler's answer.
  std::function<bool()> keep_waiting;
  std::int64_t heartbeat_ms = 500;
  /// How long the stream continues without a scheduler before it fails. Batches already in the
  /// making still arrive.
  std::int64_t scheduler_grace_ms = 120'000;
  /// Once the scheduler says that it is told to stop: false = wait for its next start, true =
  /// detach at once, and Next returns Aborted. Batches still held stay readable.
  bool leave_when_stopping = false;
  /// How long Next waits, when every slot is held, for another thread to give one back.
  std::int64_t exhausted_grace_ms = data::kExhaustedGraceMs;
};

class SlotHold;

/// A batch in its slot. Copies share the slot, which is given back when all copies and all tensors
/// made from them are gone. Empty when default-constructed.
class Batch {
 public:
  Batch() = default;
  std::uint32_t epoch() const { return at_.epoch; }
  std::uint64_t index() const { return at_.batch; }
  /// Patches of this rank; 0 for a rank whose part of a short last batch is empty.
  std::uint32_t count() const { return count_; }
  /// Patches without padding: that of a last batch (tail: pad), and of bags of too few patches.
  std::uint32_t real_count() const { return real_count_; }
  /// Whether patch `patch` of count() is padding. Only bags have some before the end.
  bool IsPadding(std::uint32_t patch) const;
  /// The batch's, of a stream with units.
  const std::optional<StreamUnit>& unit() const { return unit_; }
  bool IsLastOfUnit() const { return unit_.has_value() && at_.batch + 1 == unit_->end_batch(); }
  /// Whether its arrays of ArrayMemory::kStream lie on a device.
  bool on_device() const { return on_device_; }
  /// In the order of Stream::layout, "image" first.
  std::vector<BatchArray> arrays() const;
  /// NotFound names the arrays of the batch.
  StatusOr<BatchArray> array(std::string_view name) const;
  /// Keeps the slot as long as the returned pointer lives; the error of an exhausted ring shows
  /// `name`.
  std::shared_ptr<void> Keep(std::string name) const;
  /// The slot may only return once `passed` is true (an event on the consumer's stream). Checked by
  /// the stream's control thread about every millisecond.
  void ReleaseWhen(std::function<bool()> passed);
  /// The slot may only return once the work that is in `stream` now has passed. Does not block.
  Status ReleaseAfter(memory::GpuStream stream);
  /// Releases the batch as its destructor does: its memory may no longer be accessed.
  void Release();

 private:
  friend class TrainerStream;
  std::shared_ptr<SlotHold> hold_;
  Position at_;
  BatchArray View(std::size_t array) const;
  /// The number of each patch in its epoch, -1 of padding; null unless the batch has them.
  const std::byte* Ordinals() const;
  /// Counts by the ordinals; `by_position` where there are none.
  void CountReal(std::uint32_t by_position);

  std::uint32_t count_ = 0, real_count_ = 0;
  std::optional<StreamUnit> unit_;
  bool on_device_ = false;
  std::vector<std::byte*> data_;  ///< memory of each array
  std::shared_ptr<const BatchLayout> layout_;
};

struct StreamStats {
  std::uint64_t batches = 0, patches = 0, bytes = 0;
  double wall_s = 0;                      ///< from the first call of Next
  double wait_s = 0;                      ///< in Next, all batches
  double stall_fraction = 0;              ///< wait in Next over wall, from the second batch on
  double wait_p50_s = 0, wait_p99_s = 0;  ///< for one batch, from the second on
  double first_batch_s = 0;               ///< how long the first Next took
  std::uint64_t shards_refused = 0, shards_corrupt = 0, batches_moved = 0;
  std::uint64_t remote_bytes = 0;
  std::uint64_t connections_dropped = 0;  ///< proved no key, or sent no valid shard
  StageTotals stages;                     ///< totals of shards that are in; see stream_breakdown.h
};

/// One rank of one stream. Next and the batches are for one thread (release from any). In a child
/// made by fork() streams and batches are inert: Next is refused, and dropping them changes
/// nothing.
class Stream {
 public:
  /// Fetches the plan, checks it against its digest, makes the ring and announces it.
  static StatusOr<std::unique_ptr<Stream>> Attach(const StreamOptions& options);
  /// The same with another control session; tests use it to act as the scheduler.
  using OpenSession = std::function<StatusOr<std::unique_ptr<control::Session>>(
      control::EventLoop&, control::Session::Callbacks)>;
  static StatusOr<std::unique_ptr<Stream>> AttachOver(const OpenSession& open,
                                                      const StreamOptions& options);
  /// Detaches if that has not been done.
  virtual ~Stream() = default;

  /// Waits for the next batch in order. The first batch of the next epoch follows an epoch's last.
  /// After the stream failed: its error. A stream with units gives whole units, one after another,
  /// as they are assigned here. OutOfRange once every unit is finished by somebody; Aborted when
  /// this consumer's went to others or failed: detach, and attach with another rank.
  virtual StatusOr<Batch> Next(std::int64_t timeout_ms = -1) = 0;
  /// The unit is done, or failed alone with that outcome. Returns once that is durable; waits for a
  /// scheduler that is away. Any thread. Where batches of the unit were left, detach afterwards.
  virtual Status FinishUnit(std::uint64_t unit, const Outcome& outcome) = 0;
  /// Leaves the stream; when all ranks have, its job is done. Batches still held stay readable. A
  /// scheduler that is gone is not waited for: Unavailable.
  virtual Status Detach() = 0;

  virtual const StreamGeometry& geometry() const = 0;
  virtual const BatchLayout& layout() const = 0;
  virtual Digest plan_digest() const = 0;
  virtual std::uint64_t batches_per_epoch() const = 0;
  /// Names the position after the last batch that Next returned, in this plan: resume_token.h.
  virtual std::string ResumeToken() const = 0;
  virtual StreamStats stats() const = 0;
  virtual std::uint64_t ring_bytes() const = 0;
  /// Where the slots lie, for another process that maps them; the stream's.
  virtual const data::RingMemory& ring_memory() const = 0;
};

}  // namespace patchbay::client
