// A process that runs the user's own functions on patches in shared memory. One request at a time,
// of a fixed size; function_host.py is its other end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/memory/host_buffer.h"
#include "runtime/model/ops/own_functions.h"
#include "runtime/os/file.h"
#include "workers/functions/function_policy.h"

namespace patchbay::workers {

/// The most patches of one call.
inline constexpr std::size_t kMaxCallPatches = 16;

/// A function, and the file that it is in.
struct FunctionSource {
  plan::OwnFunction function;
  FunctionFile file;
};

/// Where the arrays of a call begin in the shared memory. A patch is (z, y, x, channel), or without
/// z where patches are planes.
struct SharedPatches {
  std::vector<std::int64_t> shape;
  std::size_t capacity = 0;  ///< patches
  DType pixels = DType::kUint8;
  /// Bytes from the memory's beginning; -1: there is no such array.
  std::int64_t pixels_at = -1, values_at = -1, mask_at = -1;
};

struct FunctionVersions {
  std::string python, numpy;
};

/// The key of the random numbers of a call, and its patches.
struct CallKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::vector<std::uint64_t> ordinals;  ///< 1 to kMaxCallPatches
};

/// Called every now and then while a function works; its error ends the wait and the process.
using WhileWaiting = std::function<Status()>;

/// Belongs to the thread that started it, whose end kills it.
class FunctionHost {
 public:
  /// Starts the interpreter with these functions loaded; `memory` must outlive the process.
  /// InvalidArgument, naming a function's key, when the interpreter cannot be started or lacks
  /// NumPy, and when a file fails to load or has no such function of these arguments.
  static StatusOr<std::unique_ptr<FunctionHost>> Start(const FunctionPolicy& policy,
                                                       std::vector<FunctionSource> sources,
                                                       const SharedPatches& patches,
                                                       const memory::MemfdBlock& memory,
                                                       const WhileWaiting& waiting);
  ~FunctionHost();
  FunctionHost(const FunctionHost&) = delete;
  FunctionHost& operator=(const FunctionHost&) = delete;

  const FunctionVersions& versions() const { return versions_; }
  bool alive() const { return pid_ > 0; }

  /// Runs function `index` on the first patches of its stage's array. InvalidArgument: it raised,
  /// or took longer than its limit; Unavailable: the process ended; ResourceExhausted: it was
  /// killed, as by the kernel where memory is short. After any error the arrays hold anything.
  Status Call(std::size_t index, const CallKey& key, const WhileWaiting& waiting);

  /// Processor time of the calls so far.
  std::int64_t cpu_ns() const { return cpu_ns_; }

 private:
  explicit FunctionHost(std::vector<FunctionSource> sources) : sources_(std::move(sources)) {}
  Status Launch(const FunctionPolicy& policy, int setup, int memory);
  StatusOr<std::string> Await(double limit_s, const WhileWaiting& waiting);
  Status Ended(std::size_t index);
  std::string Said() const;
  void Kill();

  std::vector<FunctionSource> sources_;
  FunctionVersions versions_;
  UniqueFd link_, said_;
  pid_t pid_ = -1;
  std::int64_t cpu_ns_ = 0;
};

}  // namespace patchbay::workers
