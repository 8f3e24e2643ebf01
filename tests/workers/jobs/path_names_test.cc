// What errors that travel say instead of paths.
#include "workers/access/path_names.h"

#include <gtest/gtest.h>

namespace patchbay::workers {
namespace {

TEST(PathNames, WhatLiesInsideAStoreIsNamedByWhatTheFormatFixes) {
  PathNames names;
  names.AddManifest({{"images", {"/cases", "/other/b.ome.zarr"}}});
  const auto hidden = [&](const char* path) {
    return names.Hide(std::string("read: ") + path + ": gone");
  };
  EXPECT_EQ(hidden("/cases/Jane Roe/a.ome.zarr/zarr.json"), "read: dataset 0/.../zarr.json: gone");
  EXPECT_EQ(hidden("/cases/Jane Roe/a.ome.zarr/0/zarr.json"),
            "read: dataset 0/.../0/zarr.json: gone");
  EXPECT_EQ(hidden("/cases/a.ome.zarr/0/c/1/2"), "read: dataset 0/.../0/c/1/2: gone");
  EXPECT_EQ(hidden("/cases/a.ome.zarr/0/c/1/2 chunk (0,1)"),
            "read: dataset 0/.../0/c/1/2 chunk (0,1): gone");
  EXPECT_EQ(hidden("/other/b.ome.zarr/zarr.json"), "read: dataset 1/zarr.json: gone");
  EXPECT_EQ(hidden("/other/b.ome.zarr/0/c/1/2"), "read: dataset 1/0/c/1/2: gone");
}

TEST(PathNames, WhatPeopleNamedIsHiddenInsideAStoreToo) {
  PathNames names;
  names.AddManifest({{"images", {"/cases"}}});
  EXPECT_EQ(names.Hide("/cases/a.zarr/labels/Jane Roe/0/zarr.json: gone"),
            "dataset 0/.../labels/.../0/zarr.json: gone");
  EXPECT_EQ(names.Hide("/cases/a.zarr/labels/1234/zarr.json: gone"),
            "dataset 0/.../labels/.../zarr.json: gone");
  EXPECT_EQ(names.Hide("/cases/a.zarr/Jane/Roe/zarr.json: gone"), "dataset 0/.../zarr.json: gone");
}

TEST(PathNames, OutsideAStoreNothingBelowIsShown) {
  PathNames names;
  names.AddManifest({{"images", {"/cases"}}});
  EXPECT_EQ(names.Hide("/cases/1234/5678: gone"), "dataset 0/...: gone");
  EXPECT_EQ(names.Hide("/cases/c/zarr.json: gone"), "dataset 0/...: gone");
  EXPECT_EQ(names.Hide("/cases/1234.svs: gone"), "dataset 0/...: gone");
  EXPECT_EQ(names.Hide("/cases: gone"), "dataset 0: gone");
}

}  // namespace
}  // namespace patchbay::workers
