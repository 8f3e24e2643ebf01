// Verifies that every byte of a finished store is as it was written.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

struct VerifyOptions {
  int threads = 1;
  /// At most this many faults are listed; all are counted.
  std::size_t max_listed = 1000;
};

/// Faults are findings here, never errors.
struct VerifyReport {
  /// The shard files of one level. At most max_listed of the names are kept, the first in row-major
  /// order.
  struct Level {
    std::string path;                    ///< "0"
    std::optional<std::int64_t> listed;  ///< files written; absent: not recorded in the store
    std::int64_t found = 0;              ///< files that exist among the shard grid's names
    std::vector<std::string> missing;    ///< "0/c/0/3/4": written, and not there
    std::int64_t missing_count = 0;
    std::vector<std::string> surplus;  ///< there, and the store was written without
    std::int64_t surplus_count = 0;
  };

  StoreRoots computed;                 ///< meaningful when faults == 0
  std::optional<StoreRoots> recorded;  ///< as in the metadata; absent in stores of other writers
  std::vector<Level> levels;
  /// A revision of a label set below the store.
  struct Labels {
    std::string name;  ///< "gleason.1f0c..."
    bool is_clean = false;
  };
  std::vector<Labels> labels;
  std::int64_t shards = 0, chunks = 0;  ///< sums over the image and the label sets below it
  std::uint64_t stored_bytes = 0;
  std::uint64_t faults = 0;
  std::vector<std::string> bad;  ///< "0/c/0/1/2: chunk (0,3,1): crc32c mismatch (...)", in order
  /// Nothing bad, and the roots are the recorded ones.
  bool Clean() const {
    return faults == 0 && recorded.has_value() && recorded->bytes == computed.bytes &&
           recorded->pixels == computed.pixels;
  }
};

/// The object `patchbay verify --json` prints; digests are null unless faults == 0.
Json ToJson(const VerifyReport& report);

/// (shards done, shards in all). Called from the calling thread or a worker thread, never from two
/// at once. Its error ends the work.
using VerifyProgress = std::function<Status(std::int64_t done, std::int64_t total)>;

/// Reads every shard, checks every checksum, decodes every chunk and recomputes both roots;
/// compares the existing files with the list of shard files, where the store has one. Bad content
/// is reported, not returned as an error (where nothing else is bad, a digest that is not the
/// recorded one is a fault by itself); an error means that the store could not be read (metadata
/// missing, not written by Patchbay's image writer). The roots do not depend on `threads`.
StatusOr<VerifyReport> VerifyStore(const Folders& allowed, const std::string& store,
                                   const VerifyOptions& options = {},
                                   const VerifyProgress& progress = {});

}  // namespace patchbay::zarr
