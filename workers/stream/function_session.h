// A stream's own functions on one worker: their process, and the patches it works on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/memory/host_buffer.h"
#include "workers/functions/function_host.h"
#include "workers/stream/stream_context.h"

namespace patchbay::workers {

/// Belongs to one thread.
class FunctionSession {
 public:
  /// Takes the memory; the process starts with the first call. `context` outlives the session.
  static StatusOr<std::unique_ptr<FunctionSession>> Open(const FunctionPolicy& policy,
                                                         StreamContext& context);

  /// Patches of a call, at most.
  std::size_t capacity() const { return patches_.capacity; }
  /// The place of patch `index` in the array of a stage.
  std::span<std::byte> Place(plan::FunctionStage stage, std::size_t index) const;
  /// Its mask; empty without masks.
  std::span<std::byte> Mask(std::size_t index) const;

  /// Runs the functions of a stage, one after another. Errors as for FunctionHost::Start and
  /// Call.
  Status Run(plan::FunctionStage stage, const CallKey& key, const WhileWaiting& waiting);
  std::int64_t cpu_ns() const { return cpu_ns_; }

 private:
  FunctionSession(const FunctionPolicy& policy, StreamContext& context)
      : policy_(policy), context_(context) {}
  Status Start(const WhileWaiting& waiting);

  const FunctionPolicy& policy_;
  StreamContext& context_;
  SharedPatches patches_;
  memory::MemfdBlock memory_;  ///< outlives the process
  std::unique_ptr<FunctionHost> process_;
  std::int64_t cpu_ns_ = 0;
};

/// Memory of a session's arrays, which one patch alone may exceed. Arrays larger than the caches of
/// a core cost more than further calls do.
inline constexpr std::size_t kMaxSessionBytes = std::size_t{1} << 20;

}  // namespace patchbay::workers
