#include "runtime/memory/prefault.h"

#include <algorithm>
#include <system_error>

#include <sys/mman.h>

namespace patchbay::memory {
namespace {

/// At a time. Larger means fewer calls and a longer wait for the thread to stop.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
/// Mapped before anybody works in the memory: faults beside the work would cost the work as much.
constexpr std::size_t kFirstBytes = std::size_t{1} << 30;

void Map(std::stop_token stop, std::span<std::byte> bytes) {
  while (!bytes.empty() && !stop.stop_requested()) {
    const std::size_t size = std::min(kPieceBytes, bytes.size());
    if (madvise(bytes.data(), size, MADV_POPULATE_WRITE) != 0) return;
    bytes = bytes.subspan(size);
  }
}

}  // namespace

Prefault::Prefault(std::span<std::byte> bytes) {
  const std::size_t first = std::min(kFirstBytes, bytes.size());
  Map({}, bytes.first(first));
  if (first == bytes.size()) return;
  try {
    thread_ = std::jthread(Map, bytes.subspan(first));
  } catch (const std::system_error&) {
    // No thread is to be had: the pages are mapped on first use.
  }
}

}  // namespace patchbay::memory
