#include "workers/sources/read_caches.h"

namespace patchbay::workers {

ReadCaches ReadCaches::Of(const ReadCacheLimits& limits) {
  return {std::make_shared<zarr::FileCache>(limits.open_files_max),
          std::make_shared<zarr::IndexCache>(limits.index_bytes_max), false};
}

ReadCaches ReadCaches::ForStreams(const ReadCacheLimits& limits) {
  ReadCaches caches = Of(limits);
  caches.keeps_listed_files = true;
  return caches;
}

ReadCaches ReadCaches::ForOneImage() { return Of({32, std::size_t{64} << 20}); }

}  // namespace patchbay::workers
