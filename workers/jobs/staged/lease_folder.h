// The folder that one lease of a staged job writes into, beside what the job makes: files get their
// place by a rename, so that no lease sees another's half-written ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/os/direct_file.h"
#include "runtime/os/folders.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// An expired lease can at worst write the same bytes again, and nothing once the folder around its
/// own is removed. Removed with its content.
class LeaseFolder {
 public:
  /// Below `staging`. NotFound when that is gone.
  static StatusOr<std::unique_ptr<LeaseFolder>> Make(const TaskContext& context,
                                                     const std::string& staging);
  ~LeaseFolder();
  LeaseFolder(const LeaseFolder&) = delete;
  LeaseFolder& operator=(const LeaseFolder&) = delete;

  std::string File(std::string_view name) const { return StrCat(path_, "/", name); }

  /// Makes a file of durable bytes and gives it its place, whose folder is made too. The name is
  /// durable once that folder is synced. Any thread.
  Status Put(const TaskContext& context, const std::string& target,
             std::span<const std::byte> bytes, unsigned mode, Pages pages = Pages::kNone) const;

 private:
  LeaseFolder(Folders allowed, std::string path)
      : allowed_(std::move(allowed)), path_(std::move(path)) {}
  const Folders allowed_;
  const std::string path_;
  mutable std::atomic<std::uint64_t> files_ = 0;  ///< files begun so far
};

}  // namespace patchbay::workers
