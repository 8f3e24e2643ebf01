// The cells that sampling takes, against a look at every cell.
#include "runtime/model/plan/places.h"

#include <cmath>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "runtime/core/box.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/positions/tissue_area.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

constexpr std::int64_t kPatch = 48;

RunConfig PlacesConfig(double fraction) {
  const auto config = ParseRunConfig(
      StrCat("dataset: t.csv\nnumerics: cpu\npatch: {size: [", kPatch, ", ", kPatch, "]}\n",
             "labels: {set: s, mask: true}\nsampling: {positions: random, patches_per_epoch: 9, ",
             "tissue: {min_fraction: ", fraction,
             "}, class_weights: {mucin: 1, stroma: 2, tumour: 1}}\n", "batch: {global_size: 4}\n"),
      "run.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

/// Runs of random lengths in every row.
CellSet RandomCells(std::uint32_t step, const Extent& size, std::uint32_t longest, unsigned seed) {
  std::minstd_rand random(seed);
  CellSet cells(step);
  const auto rows = static_cast<std::uint32_t>((size.y + step - 1) / step);
  const auto columns = static_cast<std::uint32_t>((size.x + step - 1) / step);
  for (std::uint32_t y = 0; y < rows; ++y) {
    for (std::uint32_t x = static_cast<std::uint32_t>(random() % longest); x < columns;) {
      const auto count = std::min<std::uint32_t>(1 + random() % longest, columns - x);
      EXPECT_TRUE(cells.Append({0, y, x, count}).ok());
      x += count + 1 + static_cast<std::uint32_t>(random() % longest);
    }
  }
  return cells;
}

/// The left third of all rows.
CellSet Area(std::uint32_t step, const Extent& size) {
  CellSet cells(step);
  for (std::uint32_t y = 0; y < size.y / step; ++y) {
    EXPECT_TRUE(cells.Append({0, y, 0, static_cast<std::uint32_t>(size.x / step / 3)}).ok());
  }
  return cells;
}

std::int64_t Scaled(std::int64_t value, std::int64_t from, std::int64_t to) {
  return static_cast<std::int64_t>(
      std::floor(static_cast<long double>(value) * static_cast<long double>(to) / from));
}

/// Origins of the patches about each class cell that have enough tissue.
std::multiset<std::pair<std::int64_t, std::int64_t>> TakenByLookingAtEach(const CellSet& cells,
                                                                          const TissueArea& tissue,
                                                                          const Extent& full,
                                                                          const Extent& size,
                                                                          double fraction) {
  std::multiset<std::pair<std::int64_t, std::int64_t>> origins;
  TissueArea::Band band(tissue);
  for (std::uint64_t n = 0; n < cells.size(); ++n) {
    const Point cell = cells.Cell(n);
    const std::int64_t step = cells.step();
    const std::int64_t y = Scaled(cell.y * step + step / 2, full.y, size.y) - kPatch / 2;
    const std::int64_t x = Scaled(cell.x * step + step / 2, full.x, size.x) - kPatch / 2;
    const std::int64_t top = Scaled(y, size.y, full.y), left = Scaled(x, size.x, full.x);
    const Box box = Box2D(top, left, Scaled(y + kPatch, size.y, full.y) - top,
                          Scaled(x + kPatch, size.x, full.x) - left);
    const long double least = static_cast<long double>(std::llround(fraction * 1e9)) *
                              static_cast<long double>(box.Pixels());
    band.Lay(box.y, box.height);
    const std::uint64_t covered = band.In(box.x, box.width);
    if (static_cast<long double>(covered) * 1e9L >= least) origins.emplace(y, x);
  }
  return origins;
}

TEST(ImagePlaces, SkippingTakesTheCellsThatALookAtEachTakes) {
  const Extent full = Flat(260, 610);
  for (const Extent& size : {full, Flat(113, 266), Flat(130, 305)}) {
    for (const double fraction : {0.3, 0.5, 0.55}) {
      const std::uint32_t step = fraction == 0.3 ? 5 : 1;
      // Speckles, or an area whose inside and outside are larger than patches.
      const CellSet tissue = fraction == 0.5 ? Area(16, full) : RandomCells(16, full, 9, 3);
      // Two classes of one lattice, which are filtered together, and one of another.
      const std::vector<std::pair<std::string, CellSet>> classes = {
          {"mucin", RandomCells(2, full, 140, 9)},
          {"stroma", RandomCells(step, full, 90, 8)},
          {"tumour", RandomCells(step, full, 200, 7)}};
      PositionIndex tissue_index{full, {{1, "tissue", 1, tissue}}};
      PositionIndex class_index{full, {}};
      for (const auto& [name, cells] : classes) {
        const auto value = static_cast<std::uint8_t>(2 + class_index.classes.size());
        class_index.classes.push_back({value, name, 1, cells});
      }
      const PlannedImage image{Sha256Of("i"), "zarr", size, 3, DType::kUint8};
      const auto places = ImagePlaces::Of(PlacesConfig(fraction), image,
                                          {.tissue = &tissue_index, .classes = &class_index});
      ASSERT_TRUE(places.ok()) << places.status();
      for (std::size_t i = 0; i < classes.size(); ++i) {
        std::multiset<std::pair<std::int64_t, std::int64_t>> origins;
        for (std::uint64_t n = 0; n < places->Counts()[i].places; ++n) {
          const Point origin = places->OriginOf(i, n);
          origins.emplace(origin.y, origin.x);
        }
        const auto& [name, cells] = classes[i];
        const auto expected =
            TakenByLookingAtEach(cells, TissueArea(tissue, full), full, size, fraction);
        EXPECT_EQ(origins, expected) << size.ToString() << " " << fraction << " " << name;
        EXPECT_GT(expected.size(), 0u);
        EXPECT_LT(expected.size(), cells.size());
      }
      EXPECT_EQ(ImagePlaces::CountsOf(PlacesConfig(fraction), image,
                                      {.tissue = &tissue_index, .classes = &class_index})
                    .value(),
                places->Counts());
    }
  }
}

}  // namespace
}  // namespace patchbay::plan
