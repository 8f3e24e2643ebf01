#include "workers/sources/read_caches.h"

namespace patchbay::workers {

ReadCaches ReadCaches::Of(const ReadCacheLimits& limits) {
  return {std::make_shared<zarr::FileCache>(limits.open_files_max),
          std::make_shared<zarr::IndexCache>(limits.index_bytes_max)};
}

ReadCaches ReadCaches::ForOneImage() { return Of({32, std::size_t{64} << 20}); }

}  // namespace patchbay::workers
