// Where a shard's bytes go. The pipeline asks for a window, writes the patches into it, and has it
// delivered; what lies behind the window is the trainer's mapped slot or a send buffer.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "runtime/core/status.h"
#include "runtime/model/stream/stage_times.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/stream/stream_context.h"

namespace patchbay::workers {

/// The destination of one shard. Used by one thread at a time, except that different patches may be
/// written by different threads.
class ShardWindow {
 public:
  virtual ~ShardWindow() = default;

  /// The shard's bytes of an array of the stream's layout in host memory, exactly those of its
  /// grant; not to be written where `device` is not null.
  virtual std::span<std::byte> host(std::size_t array) const = 0;
  /// The same in this process's GPU, or null.
  virtual std::byte* device(std::size_t) const { return nullptr; }
  /// Everything is written; `times` is what it took. OK: as far as a worker can know the trainer
  /// has it. Unavailable: it could not be delivered. Called at most once; nothing may be written
  /// afterwards.
  virtual Status Deliver(const StageTimes& times) = 0;
  /// Whether Deliver waits for the network: then it is called from the delivery thread.
  virtual bool DeliverBlocks() const = 0;
};

class Delivery {
 public:
  virtual ~Delivery() = default;
  /// Unavailable when the trainer cannot be reached; InvalidArgument for a grant that does not fit
  /// its ring. May wait for a free send buffer, and for the trainer's answer the first time.
  virtual StatusOr<std::unique_ptr<ShardWindow>> Open(const StreamContext& context,
                                                      const protocol::ShardLease& lease) = 0;
};

}  // namespace patchbay::workers
