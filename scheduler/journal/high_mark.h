// The highest record that the journal is known to have held, kept beside it. Private to
// scheduler/journal.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay::scheduler {

/// The file `JOURNAL.mark`: the last sequence that was durable, as decimal digits. It is written
/// after the records, without waiting for the disk, so it never names a record that was not
/// durable; after a power cut it may name an earlier one. A journal that ends before its mark has
/// lost records: its write-ahead log was cut, or one of its files was removed or put back from an
/// older copy. Used by one thread at a time.
class HighMark {
 public:
  /// Opens or creates it, mode 0600. DataLoss when it holds anything else than a mark.
  static StatusOr<HighMark> Open(const std::string& path);

  /// As of the last Set, also of another process; 0 = nothing was durable yet.
  std::uint64_t sequence() const { return sequence_; }
  Status Set(std::uint64_t sequence);
  const std::string& path() const { return path_; }

 private:
  HighMark(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  UniqueFd file_;
  std::uint64_t sequence_ = 0;
};

}  // namespace patchbay::scheduler
