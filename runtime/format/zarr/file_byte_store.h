// Files below a folder as a ByteStore.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"
#include "runtime/format/zarr/file_cache.h"
#include "runtime/format/zarr/store_files.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// The regular files below `root`; the empty key is `root` itself. A file that was closed to make
/// room, or that changed, and is opened again may be another one by then: its stamp tells.
/// Whichever thread opens a file, it stays in the folders given here.
class FileByteStore final : public ByteStore {
 public:
  FileByteStore(Folders allowed, std::string root, std::shared_ptr<FileCache> files);
  ~FileByteStore() override;
  FileByteStore(const FileByteStore&) = delete;
  FileByteStore& operator=(const FileByteStore&) = delete;

  /// From now on a file that is not as listed is Aborted: written, gone, or not there before. Call
  /// before other threads read.
  void Expect(std::shared_ptr<const StoreFiles> files) { expected_ = std::move(files); }

  StatusOr<std::shared_ptr<const StoredBytes>> Open(std::string_view key) override;
  StatusOr<std::vector<std::string>> List(std::string_view prefix) override;
  std::string NameOf(std::string_view key) const override;

 private:
  const std::string root_;
  const std::shared_ptr<FileCache> files_;
  const std::uint64_t owner_;
  const Folders allowed_;
  std::shared_ptr<const StoreFiles> expected_;  ///< null: any file
};

/// One file, which stays open as long as somebody holds it; NotFound when there is none.
StatusOr<std::shared_ptr<const StoredBytes>> OpenStoredFile(const Folders& allowed,
                                                            const std::string& path);

}  // namespace patchbay::zarr
