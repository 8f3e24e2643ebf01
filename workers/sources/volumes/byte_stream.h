// The bytes of a file from a place on, inflated where they are deflated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// Reads forward only, and never more than it is asked for. Not thread-safe.
class ByteStream {
 public:
  enum class Packing { kNone, kDeflated, kRawDeflated };

  /// `path` must be a regular file. Deflated: zlib or gzip, detected by the header; raw: deflate
  /// without a header, as in DICOM.
  static StatusOr<ByteStream> Open(const Folders& allowed, const std::string& path,
                                   std::uint64_t offset, Packing packing);
  /// kDeflated for a file that begins like gzip.
  static StatusOr<Packing> PackingOf(const Folders& allowed, const std::string& path);

  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;
  ~ByteStream();

  /// Exactly out.size() bytes; DataLoss when they are not there or damaged. Messages hold no path.
  Status Read(std::span<std::byte> out);
  Status Skip(std::uint64_t bytes);
  /// For deflated bytes: reads the rest to their end, so that zlib compares its checksum with the
  /// bytes read. DataLoss when it differs, when the end is missing, or when more than `most`
  /// bytes follow. `go_on`, if given, is called now and then.
  static constexpr std::uint64_t kMostAfterVoxels = std::uint64_t{1} << 30;
  Status ReadToEnd(const std::function<Status()>& go_on, std::uint64_t most = kMostAfterVoxels);

  /// For deflated bytes: whether their end was read, and at most one zero follows it in the file.
  StatusOr<bool> IsAtEnd();

  /// The most bytes that can still follow. Sizes in headers are checked against it before memory is
  /// allocated.
  std::uint64_t MostLeft() const;

 private:
  struct State;
  explicit ByteStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace patchbay::workers
