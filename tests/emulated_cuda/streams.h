// Streams and events: queued work runs as late, and as interleaved, as CUDA allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cuda_runtime_api.h"

namespace patchbay::emulated_cuda {

struct Stream;

/// A kernel, a copy, a fill, or the place of an event in its stream.
struct Work {
  std::function<void()> run;  ///< empty for a place
  std::shared_ptr<Stream> stream;
  std::vector<std::shared_ptr<Work>> after;  ///< work of other streams
  const std::byte* host = nullptr;           ///< pinned memory that it uses
  std::size_t host_bytes = 0;
  bool reads_host = false;
  std::uint64_t host_digest = 0;  ///< digest of its source, when it was queued
  bool done = false;
  std::int64_t done_ns = 0;    ///< when it was
  const char* kind = nullptr;  ///< "kernel", "up" or "down", for the timeline
  std::uint64_t number = 0;    ///< in the order of queueing
};

struct Stream {
  int device = 0;
  bool blocking = false;  ///< waits for the legacy stream, and that for it
  std::deque<std::shared_ptr<Work>> queued;
};

// All under the lock.

cudaError_t MakeStream(int device, bool blocking, cudaStream_t* stream);
cudaError_t DropStream(cudaStream_t stream);
/// The stream of a handle; null for one that is not a stream. nullptr is the legacy stream of
/// `device`.
std::shared_ptr<Stream> StreamOf(cudaStream_t handle, int device);

cudaError_t MakeEvent(int device, cudaEvent_t* event);
cudaError_t DropEvent(cudaEvent_t event);
struct Event {
  int device = 0;
  std::shared_ptr<Work> recorded;
  int asks = 0;
};
Event* EventOf(cudaEvent_t handle);

/// Queues, and lets some work run, by the pace.
void Queue(const std::shared_ptr<Stream>& stream, std::shared_ptr<Work> work);
/// Runs `work`, after all work that it depends on.
void Finish(std::shared_ptr<Work> work);
void FinishStream(const std::shared_ptr<Stream>& stream);
void FinishDevice(int device);
/// Whether it is done; an asker hears no at most 64 times.
bool Ask(std::shared_ptr<Work> work, int& asks);
/// Lets some work run, by the pace: in every call.
void Drift();
/// One line of the timeline, where there is one: work of a stream that runs now, or an allocation.
void Note(const void* stream, std::uint64_t number, const char* kind);
/// Reports work that is queued and uses this host memory.
void CheckIdle(const void* memory, std::size_t size_bytes, const char* call);

}  // namespace patchbay::emulated_cuda
