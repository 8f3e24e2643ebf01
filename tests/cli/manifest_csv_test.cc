// The table of results and their slides, as a job writes it.
#include <filesystem>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/cli/jobs/failed_sources.h"
#include "runtime/core/hash.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

TEST(ManifestCsv, QuotedPathsAreReadAndAMissingTableIsEmpty) {
  std::string folder = (std::filesystem::temp_directory_path() / "patchbay-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_TRUE(ReadManifestCsv(folder, "store", "source").empty());
  const std::string table =
      "store,source,source_sha256\r\na.ome.zarr,/data/a.svs,00\r\n"
      "b.ome.zarr,\"/data/with \"\"quotes\"\", and\r\nlines.svs\",11\r\n";
  ASSERT_TRUE(
      WriteFileDurably(Folders::OfThisUser(), folder + "/manifest.csv", AsBytes(table)).ok());
  const auto sources = ReadManifestCsv(folder, "store", "source");
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources.at("a.ome.zarr"), "/data/a.svs");
  EXPECT_EQ(sources.at("b.ome.zarr"), "/data/with \"quotes\", and\r\nlines.svs");
  EXPECT_EQ(ReadManifestCsv(folder, "source_sha256", "store").at("11"), "b.ome.zarr");
  EXPECT_TRUE(ReadManifestCsv(folder, "store", "path").empty()) << "a column that is not there";
  EXPECT_TRUE(ReadManifestCsv(folder, "path", "source").empty());
  const std::string ragged = "store,source\r\nshort\r\na,/a.svs,more\r\nb,/b.svs\r\n";
  ASSERT_TRUE(
      WriteFileDurably(Folders::OfThisUser(), folder + "/manifest.csv", AsBytes(ragged)).ok());
  const std::map<std::string, std::string> whole = {{"a", "/a.svs"}, {"b", "/b.svs"}};
  EXPECT_EQ(ReadManifestCsv(folder, "store", "source"), whole) << "a row without its cell";
  // A row longer than the heading adds no column.
  EXPECT_TRUE(ReadManifestCsv(folder, "store", "more").empty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace patchbay::cli
