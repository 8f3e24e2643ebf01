#include "tests/emulated_cuda/streams.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include <unistd.h>

#include "tests/emulated_cuda/devices.h"
#include "tests/emulated_cuda/emulation.h"
#include "tests/emulated_cuda/memory.h"

namespace patchbay::emulated_cuda {
namespace {

constexpr int kMaxAsks = 64;

struct Streams {
  std::map<cudaStream_t, std::shared_ptr<Stream>> live;
  std::vector<std::shared_ptr<Stream>> dropped;  ///< destroyed with work queued: it still runs
  std::array<std::shared_ptr<Stream>, kMaxDevices> legacy;
  std::map<cudaEvent_t, Event> events;
  std::uintptr_t handles = 0;
};
Streams& TheStreams() {
  static auto* streams = new Streams;
  return *streams;
}

std::vector<std::shared_ptr<Stream>> AllStreams() {
  Streams& s = TheStreams();
  std::erase_if(s.dropped, [](const auto& stream) { return stream->queued.empty(); });
  std::vector<std::shared_ptr<Stream>> all = s.dropped;
  for (const auto& [handle, stream] : s.live) all.push_back(stream);
  for (const auto& stream : s.legacy) {
    if (stream != nullptr) all.push_back(stream);
  }
  return all;
}

const std::shared_ptr<Stream>& LegacyOf(int device) {
  std::shared_ptr<Stream>& legacy = TheStreams().legacy[static_cast<std::size_t>(device)];
  if (legacy == nullptr) legacy = std::make_shared<Stream>(Stream{device, true, {}});
  return legacy;
}

std::uint64_t DigestOf(const std::byte* bytes, std::size_t size) {
  std::uint64_t sum = size;
  for (; size >= 8; bytes += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 29;
  }
  for (std::size_t i = 0; i < size; ++i) {
    sum = (sum ^ std::to_integer<std::uint64_t>(bytes[i])) * 0x100000001B3u;
  }
  return sum;
}

void Execute(Work& work) {
  work.done = true;
  work.done_ns = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  if (!work.run || Lost(work.stream->device)) return;
  if (work.kind != nullptr) Note(work.stream.get(), work.number, work.kind);
  CountWork(work.stream->device);
  if (work.reads_host && DigestOf(work.host, work.host_bytes) != work.host_digest) {
    Report("pinned memory of " + std::to_string(work.host_bytes) +
           " bytes was written before the copy that reads it had run");
  }
  const OpenMemory open(work.stream->device);
  work.run();
  work.run = nullptr;
}

bool Ready(const Stream& stream) {
  return !stream.queued.empty() &&
         std::all_of(stream.queued.front()->after.begin(), stream.queued.front()->after.end(),
                     [](const auto& work) { return work->done; });
}

void ExecuteFirst(Stream& stream) {
  const std::shared_ptr<Work> first = stream.queued.front();
  stream.queued.pop_front();
  Execute(*first);
}

/// Runs up to `most` pieces of work that nothing holds back, of any streams.
void ExecuteSome(std::uint64_t most) {
  for (std::uint64_t i = 0; i < most; ++i) {
    std::vector<std::shared_ptr<Stream>> ready = AllStreams();
    std::erase_if(ready, [](const auto& stream) { return !Ready(*stream); });
    if (ready.empty()) return;
    ExecuteFirst(*ready[Roll() % ready.size()]);
  }
}

}  // namespace

void Note(const void* stream, std::uint64_t number, const char* kind) {
  if (TheSettings().timeline.empty()) return;
  static std::FILE* const file = std::fopen(
      (TheSettings().timeline + "/" + std::to_string(getpid()) + ".timeline").c_str(), "a");
  if (file == nullptr) Report("the timeline cannot be written to " + TheSettings().timeline);
  std::fprintf(file, "%p %" PRIu64 " %s\n", stream, number, kind);
  std::fflush(file);
}

cudaError_t MakeStream(int device, bool blocking, cudaStream_t* stream) {
  Streams& s = TheStreams();
  // An invalid address: a read through it crashes.
  const auto handle = reinterpret_cast<cudaStream_t>(0x5100 + 16 * ++s.handles);
  s.live[handle] = std::make_shared<Stream>(Stream{device, blocking, {}});
  *stream = handle;
  return cudaSuccess;
}

cudaError_t DropStream(cudaStream_t stream) {
  Streams& s = TheStreams();
  const auto it = s.live.find(stream);
  if (it == s.live.end()) return cudaErrorInvalidResourceHandle;
  s.dropped.push_back(it->second);
  s.live.erase(it);
  return cudaSuccess;
}

std::shared_ptr<Stream> StreamOf(cudaStream_t handle, int device) {
  if (handle == nullptr) return LegacyOf(device);
  const auto it = TheStreams().live.find(handle);
  return it == TheStreams().live.end() ? nullptr : it->second;
}

cudaError_t MakeEvent(int device, cudaEvent_t* event) {
  Streams& s = TheStreams();
  const auto handle = reinterpret_cast<cudaEvent_t>(0x5100 + 16 * ++s.handles);
  s.events[handle].device = device;
  *event = handle;
  return cudaSuccess;
}

cudaError_t DropEvent(cudaEvent_t event) {
  return TheStreams().events.erase(event) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

Event* EventOf(cudaEvent_t handle) {
  const auto it = TheStreams().events.find(handle);
  return it == TheStreams().events.end() ? nullptr : &it->second;
}

void Queue(const std::shared_ptr<Stream>& stream, std::shared_ptr<Work> work) {
  static std::uint64_t number = 0;
  work->stream = stream;
  work->number = ++number;
  if (stream->blocking) {
    const auto& legacy = LegacyOf(stream->device);
    for (const auto& other : AllStreams()) {
      const bool before = stream == legacy ? other->blocking : other == legacy;
      if (before && other != stream && other->device == stream->device && !other->queued.empty()) {
        work->after.push_back(other->queued.back());
      }
    }
  }
  const bool late = TheSettings().pace != Pace::kEager;
  work->reads_host = work->reads_host && late;
  if (work->reads_host) work->host_digest = DigestOf(work->host, work->host_bytes);
  stream->queued.push_back(work);
  if (late) {
    Drift();
  } else {
    Finish(work);
  }
}

void Finish(std::shared_ptr<Work> work) {
  while (!work->done) {
    Stream& stream = *work->stream;
    const std::vector<std::shared_ptr<Work>> after = stream.queued.front()->after;
    for (const auto& earlier : after) Finish(earlier);
    if (work->done) return;
    if (Ready(stream)) ExecuteFirst(stream);
    Drift();
  }
}

void FinishStream(const std::shared_ptr<Stream>& stream) {
  if (!stream->queued.empty()) Finish(stream->queued.back());
}

void FinishDevice(int device) {
  for (const auto& stream : AllStreams()) {
    if (stream->device == device) FinishStream(stream);
  }
}

bool Ask(std::shared_ptr<Work> work, int& asks) {
  Drift();
  if (work == nullptr || work->done) return true;
  if (TheSettings().pace == Pace::kRandom && OneIn(8)) asks = kMaxAsks;
  if (++asks >= kMaxAsks) Finish(work);
  return work->done;
}

void Drift() {
  if (TheSettings().pace == Pace::kRandom && OneIn(3)) ExecuteSome(1 + Roll() % 3);
}

void CheckIdle(const void* memory, std::size_t size_bytes, const char* call) {
  const auto* begin = static_cast<const std::byte*>(memory);
  for (const auto& stream : AllStreams()) {
    for (const auto& work : stream->queued) {
      if (work->host_bytes > 0 && work->host < begin + size_bytes &&
          begin < work->host + work->host_bytes) {
        Report(std::string(call) + ": a copy that uses the memory is still queued");
      }
    }
  }
}

}  // namespace patchbay::emulated_cuda
