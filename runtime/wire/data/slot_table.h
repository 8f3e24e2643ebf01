// The trainer's slots as a pure table: the batch in each slot, the shards that have arrived, the
// holders. It has no memory, thread or clock: Ring keeps one under its mutex.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/model/stream/limits.h"
#include "runtime/model/stream/position.h"
#include "runtime/model/stream/stream_geometry.h"
#include "runtime/model/stream/unit_course.h"
#include "runtime/wire/data/shard_header.h"

namespace patchbay::data {

/// The way of a slot from one announcement to the next.
enum class SlotPhase : std::uint8_t {
  kFree,     ///< announced: the scheduler may grant it
  kFilling,  ///< bound to a batch, shards missing
  kFull,     ///< every shard is in
  kInUse,    ///< handed out by Next, or kept by a tensor
  kResting,  ///< a fenced process may still write to it; becomes a spare afterwards
  kSpare,    ///< holds nothing and is not announced
};

/// Fixed for the life of a ring.
struct SlotTableOptions {
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  StreamGeometry geometry;
  std::uint32_t slots = 4;   ///< announced: prefetch + 2
  std::uint32_t spares = 1;  ///< larger = more frozen workers survived at once
  Position first;
};

/// One slot, for reports and for the scheduler after its restart.
struct SlotReport {
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;
  SlotPhase phase = SlotPhase::kFree;
  Position at;
  std::vector<std::uint32_t> counted;
};

/// Patches of one shard to copy inside the ring's memory, in every array.
struct ShardMove {
  std::uint32_t from_slot = 0, to_slot = 0;
  std::uint32_t place = 0, count = 0;
};

/// The outcome for a slot that a fenced process may still write to.
struct Evacuation {
  std::optional<std::uint32_t> resting_slot;  ///< rests until ProveGone; nullopt: nothing there
  std::vector<ShardMove> moves;
};

/// The outcome for a shard that arrived.
struct Counted {
  std::optional<ShardMove> move;  ///< its batch moved: copy before it is read
  bool batch_full = false;
};

/// Generations of a slot strictly rise; a shard counts once; slots + spares is constant. In
/// a stream with units, only batches of units that were added count.
/// Not thread-safe.
class SlotTable {
 public:
  /// InvalidArgument for an empty geometry, a rank outside the world, or counts past their limits.
  static StatusOr<SlotTable> Create(const SlotTableOptions& options);

  /// Whether a shard with this header may be received or counted now. Changes nothing.
  /// OK; AlreadyExists (it counted before), FailedPrecondition (dead grant, fenced lease, released
  /// batch: drop it and go on), InvalidArgument (does not fit the geometry or another stream).
  [[nodiscard]] Status Admit(const ShardHeader& header) const;

  /// Admits as Admit does, binds the slot to the header's batch and marks the header's array as
  /// being received. The first of a shard's arrays begins a transfer under the header's lease, and
  /// the others join it; a shard has one transfer at a time. Unavailable while the shard has a
  /// transfer under another lease; FailedPrecondition when the array was received before, or
  /// another array of the transfer failed. Pair with EndReceive.
  [[nodiscard]] Status BeginReceive(const ShardHeader& header);
  /// Ends the receipt of the header's array; `good`: its bytes are intact. True when the transfer
  /// is now complete and the shard can be counted. One failure voids all arrays of the shard.
  bool EndReceive(const ShardHeader& header, bool good);
  /// Whether a transfer of the shard runs under this lease or an older one; a fence of `lease`
  /// would void it.
  bool Receiving(const ShardId& shard, const LeaseNumber& lease) const;

  /// Counts a shard whose bytes have arrived. Errors as for Admit.
  [[nodiscard]] StatusOr<Counted> Count(const ShardHeader& header);

  /// Refuses `lease` and every older lease of that shard from now on. False if the shard had
  /// already counted.
  bool Fence(const ShardId& shard, const LeaseNumber& lease);

  /// The holder of a fenced lease may still write into the slot of `grant` (as the scheduler sent
  /// it). The batch moves to a spare slot, the caller copies the counted shards, and the slot rests
  /// until ProveGone. Shards still being made under live leases in the old slot count as before,
  /// and are copied then. ResourceExhausted when no spare is left.
  StatusOr<Evacuation> Evacuate(const ShardId& shard, const Grant& grant);
  /// One holder for which Evacuate named this slot can no longer write.
  void ProveGone(std::uint32_t slot);

  /// The slot whose batch `at` is complete, or nullopt.
  std::optional<std::uint32_t> FullSlot(Position at) const;
  /// True when this rank has no patches in the batch: it needs no slot and is complete as it is.
  bool IsEmpty(Position at) const;
  /// kFull to kInUse; the next batch may be taken. `at` must be next() and complete.
  void Take(Position at);
  /// kInUse to kFree with the next generation. False if that generation is not in use.
  bool Release(std::uint32_t slot, std::uint64_t generation);

  /// The first batch not taken yet; of a stream with units it may be one that never comes, while
  /// no later unit was added.
  Position next() const;
  /// Units of such a stream: see UnitCourse.
  void AddUnits(const std::vector<AssignedUnit>& units);
  void RemoveUnit(std::uint64_t unit) { course_.Remove(unit); }
  const std::vector<AssignedUnit>& units() const { return course_.units(); }
  std::uint32_t SlotCount() const { return static_cast<std::uint32_t>(slots_.size()); }
  SlotReport Report(std::uint32_t slot) const;
  std::vector<SlotReport> ReportAll() const;
  /// The slot that holds (or is filling) the batch.
  std::optional<std::uint32_t> SlotOf(Position at) const;
  /// True when every slot that could be granted is in use, so that no batch can arrive.
  bool Exhausted() const;
  std::uint32_t SparesLeft() const;
  const SlotTableOptions& options() const { return options_; }

 private:
  struct Shard {
    bool counted = false;
    std::optional<LeaseNumber> fenced;  ///< this lease and older ones are void
  };
  /// The arrays of a shard under one lease; kept when it failed or was left half-way, until another
  /// lease takes over.
  struct Transfer {
    ShardId shard;
    LeaseNumber lease;
    std::uint32_t begun = 0, landed = 0;  ///< sets of arrays
    std::uint32_t running = 0;            ///< requests
    bool failed = false;
  };
  struct Slot {
    std::uint64_t generation = 1;
    SlotPhase phase = SlotPhase::kFree;
    Position at;
    std::uint32_t zombies = 0;
    std::vector<Transfer> transfers;  ///< into this slot's memory, at most one per shard
  };
  /// A batch from its first sign of life until it is taken. Outlives its slot when it moves.
  struct Batch {
    std::vector<Shard> shards;
    std::uint32_t counted = 0;
    std::optional<std::uint32_t> slot;
  };

  explicit SlotTable(const SlotTableOptions& options);
  Status CheckForm(const ShardHeader& header) const;
  Status CheckSlot(const ShardHeader& header) const;
  Status CheckShard(const ShardHeader& header) const;
  Status CheckNoTransfer(const ShardHeader& header) const;
  static bool Receives(const Slot& slot);
  static Transfer* FindTransfer(Slot& slot, const ShardId& shard);
  static void ForgetTransfer(Slot& slot, const ShardId& shard);
  Batch& BatchAt(Position at);
  const Batch* FindBatch(Position at) const;
  bool HasUnits() const { return !options_.geometry.units.empty(); }
  bool InWindow(Position at) const;
  void Bind(std::uint32_t slot, Position at);
  std::optional<std::uint32_t> WritableSlot(const ShardId& shard, const Grant& grant) const;
  void EndRests();

  SlotTableOptions options_;
  std::vector<Slot> slots_;
  std::map<Position, Batch> batches_;
  Position next_;      ///< behind the last one taken
  UnitCourse course_;  ///< the units of a stream that has some
};

}  // namespace patchbay::data
