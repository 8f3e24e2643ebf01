// The files of a slide as one object, one after another, so that a place in any of them is a
// number.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/os/folders.h"
#include "workers/sources/read_caches.h"

namespace patchbay::workers {

using StoredParts = std::vector<std::shared_ptr<const zarr::StoredBytes>>;

/// The parts put together; the stamp is that of all of them. At least one.
std::shared_ptr<const zarr::StoredBytes> Join(StoredParts parts);

/// A store whose empty key is the files put together.
class JoinedFiles final : public zarr::ByteStore {
 public:
  /// `files`: at least one path.
  JoinedFiles(const Folders& allowed, const std::vector<std::string>& files,
              const ReadCaches& caches);

  /// The files apart, in their order; NotFound when one is gone.
  StatusOr<StoredParts> OpenParts();

  StatusOr<std::shared_ptr<const zarr::StoredBytes>> Open(std::string_view key) override;
  StatusOr<std::vector<std::string>> List(std::string_view prefix) override;
  std::string NameOf(std::string_view key) const override;

 private:
  std::vector<std::unique_ptr<zarr::FileByteStore>> stores_;
};

}  // namespace patchbay::workers
