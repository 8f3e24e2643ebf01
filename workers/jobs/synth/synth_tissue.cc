#include "workers/jobs/synth/synth_tissue.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/random.h"

namespace patchbay::workers {
namespace {

constexpr int kTilePixels = TissueField::kTile * TissueField::kTile;

// Independent noise fields, by use; the number is part of the random counter.
enum Field : int {
  kMask,
  kMaskEdge,
  kMaskRim,
  kDensity,
  kGaps,
  kBundles,
  kFibre,
  kNucleus,
  kGrain
};

constexpr int kNucleusCell = 20;   ///< pixels; at most one nucleus in each
constexpr int kNucleusReach = 12;  ///< no nucleus is wider than this from its centre

// Optical densities of unit stain in red, green, blue (after Ruifrok and Johnston).
constexpr float kHematoxylin[3] = {0.65F, 0.70F, 0.29F};
constexpr float kEosin[3] = {0.09F, 0.92F, 0.36F};

PhiloxBlock Hash(std::uint64_t seed, int field, std::int64_t y, std::int64_t x) {
  const PhiloxBlock counter = {{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                                static_cast<std::uint32_t>(field), 0x53594E54u}};
  return Philox4x32(counter, static_cast<std::uint32_t>(seed),
                    static_cast<std::uint32_t>(seed >> 32));
}

float Smooth(float t) { return t * t * (3 - 2 * t); }
float Unit(float t) { return std::clamp(t, 0.0F, 1.0F); }

}  // namespace

TissueField::TissueField(std::uint64_t seed) : seed_(seed) {
  for (int i = 0; i < kOdSteps; ++i) {
    const double od = static_cast<double>(i) / static_cast<double>(kOdScale);
    intensity_[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(std::lround(244.0 * std::exp(-od)));
  }
  for (int i = 0; i < kTilePixels; i += 4) {
    const PhiloxBlock block = Hash(seed, kGrain, 0, i / 4);
    for (int k = 0; k < 4; ++k) {
      grain_[static_cast<std::size_t>(i + k)] = (UniformFloat(block.word[k]) - 0.5F) * 0.035F;
    }
  }
}

/// The value of a noise at one of its lattice points, in (0, 1).
float TissueField::Lattice(int field, std::int64_t y, std::int64_t x) const {
  return UniformFloat(Hash(seed_, field, y, x).word[0]);
}

/// One pixel of the sum that Add computes for a whole tile.
float TissueField::At(const Octave& o, std::int64_t y, std::int64_t x) const {
  const std::int64_t cy = y / o.spacing, cx = x / o.spacing;
  const float wy = Smooth(static_cast<float>(y % o.spacing) / static_cast<float>(o.spacing));
  const float wx = Smooth(static_cast<float>(x % o.spacing) / static_cast<float>(o.spacing));
  const int field = o.field + (o.spacing << 8);
  const float a = Lattice(field, cy, cx), b = Lattice(field, cy, cx + 1);
  const float c = Lattice(field, cy + 1, cx), d = Lattice(field, cy + 1, cx + 1);
  const float left = a + (c - a) * wy, right = b + (d - b) * wy;
  return o.weight * (left + (right - left) * wx);
}

void TissueField::Add(const Octave& o, std::int64_t y, std::int64_t x,
                      std::vector<float>& out) const {
  const int run = std::min(o.spacing, kTile);  // pixels of the tile in one lattice cell
  const int cells = kTile / run;
  std::array<float, kTile> weight;
  for (int i = 0; i < run; ++i) {
    weight[static_cast<std::size_t>(i)] =
        Smooth(static_cast<float>((x + i) % o.spacing) / static_cast<float>(o.spacing));
  }
  std::array<float, kTile + 1> above, below, blended;
  for (int row = 0; row < kTile; ++row) {
    const std::int64_t cy = (y + row) / o.spacing, cx = x / o.spacing;
    if (row % run == 0) {
      for (int i = 0; i <= cells; ++i) {
        const auto k = static_cast<std::size_t>(i);
        above[k] = Lattice(o.field + (o.spacing << 8), cy, cx + i);
        below[k] = Lattice(o.field + (o.spacing << 8), cy + 1, cx + i);
      }
    }
    const float wy =
        Smooth(static_cast<float>((y + row) % o.spacing) / static_cast<float>(o.spacing));
    for (std::size_t k = 0; k <= static_cast<std::size_t>(cells); ++k) {
      blended[k] = (above[k] + (below[k] - above[k]) * wy) * o.weight;
    }
    float* p = out.data() + row * kTile;
    for (int cell = 0; cell < cells; ++cell, p += run) {
      const float left = blended[static_cast<std::size_t>(cell)];
      const float slope = blended[static_cast<std::size_t>(cell) + 1] - left;
      for (int i = 0; i < run; ++i) p[i] += left + slope * weight[static_cast<std::size_t>(i)];
    }
  }
}

/// Ellipses of hematoxylin, crowded where the density noise is high.
void TissueField::AddNuclei(std::int64_t y, std::int64_t x, std::vector<float>& out) const {
  constexpr Octave kCrowd{kDensity, 512, 0.7F}, kNest{kDensity, 128, 0.3F};
  const std::int64_t first_row = std::max<std::int64_t>(y - kNucleusReach, 0) / kNucleusCell;
  const std::int64_t first_column = std::max<std::int64_t>(x - kNucleusReach, 0) / kNucleusCell;
  for (std::int64_t cy = first_row; cy * kNucleusCell < y + kTile + kNucleusReach; ++cy) {
    for (std::int64_t cx = first_column; cx * kNucleusCell < x + kTile + kNucleusReach; ++cx) {
      const PhiloxBlock a = Hash(seed_, kNucleus, cy, cx);
      const PhiloxBlock b = Hash(seed_, kNucleus + 100, cy, cx);
      const float centre_y =
          static_cast<float>(cy * kNucleusCell - y) + UniformFloat(a.word[0]) * kNucleusCell;
      const float centre_x =
          static_cast<float>(cx * kNucleusCell - x) + UniformFloat(a.word[1]) * kNucleusCell;
      const std::int64_t py = cy * kNucleusCell, px = cx * kNucleusCell;
      const float crowding = At(kCrowd, py, px) + At(kNest, py, px);
      if (UniformFloat(a.word[2]) > 1.6F * crowding - 0.35F) continue;
      const float radius = 3.5F + 4.0F * UniformFloat(a.word[3]);
      const float ratio = 1.0F + 0.5F * UniformFloat(b.word[0]);
      // A direction without sine and cosine: a point of the square, brought to the circle.
      const float u = 2 * UniformFloat(b.word[1]) - 1, v = 2 * UniformFloat(b.word[2]) - 1;
      const float length = std::sqrt(u * u + v * v) + 1e-6F;
      const float dir_y = u / length, dir_x = v / length;
      const float depth = 0.75F + 0.7F * UniformFloat(b.word[3]);
      const int y0 = std::max(0, static_cast<int>(centre_y) - kNucleusReach);
      const int y1 = std::min(kTile, static_cast<int>(centre_y) + kNucleusReach + 1);
      const int x0 = std::max(0, static_cast<int>(centre_x) - kNucleusReach);
      const int x1 = std::min(kTile, static_cast<int>(centre_x) + kNucleusReach + 1);
      const float along = 1 / (radius * ratio), across = ratio / radius;
      for (int row = y0; row < y1; ++row) {
        float* p = out.data() + row * kTile;
        for (int column = x0; column < x1; ++column) {
          const float dy = static_cast<float>(row) - centre_y,
                      dx = static_cast<float>(column) - centre_x;
          const float s = (dy * dir_y + dx * dir_x) * along, t = (dx * dir_y - dy * dir_x) * across;
          const float inside = Unit((1 - (s * s + t * t)) * 2.5F);
          p[column] = std::max(p[column], inside * depth);
        }
      }
    }
  }
}

void TissueField::Colour(const Scratch& scratch, std::uint8_t* rgb) const {
  for (int i = 0; i < kTilePixels; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const float tissue = Smooth(Unit((scratch.mask[k] - 0.42F) * 12));
    const float gap = Smooth(Unit((scratch.texture[k] - 0.66F) * 14));
    const float solid = tissue * (1 - gap);
    const float fibre = scratch.fibre[k];
    const float nuclei = scratch.hematoxylin[k] * (0.75F + 0.5F * fibre);
    const float h = solid * (0.10F + 0.10F * fibre + nuclei);
    const float e = solid * (0.18F + 0.55F * fibre);
    const float base = 0.02F + grain_[k];
    for (int c = 0; c < 3; ++c) {
      const float od = base + h * kHematoxylin[c] + e * kEosin[c];
      const int step = std::clamp(static_cast<int>(od * kOdScale), 0, kOdSteps - 1);
      rgb[3 * i + c] = intensity_[static_cast<std::size_t>(step)];
    }
  }
}

void TissueField::Render(std::int64_t y, std::int64_t x, Scratch& scratch,
                         std::uint8_t* rgb) const {
  for (auto* field : {&scratch.mask, &scratch.texture, &scratch.fibre, &scratch.hematoxylin}) {
    field->assign(kTilePixels, 0.0F);
  }
  Add({kMask, 2048, 0.60F}, y, x, scratch.mask);
  Add({kMaskEdge, 512, 0.28F}, y, x, scratch.mask);
  Add({kMaskRim, 64, 0.12F}, y, x, scratch.mask);
  Add({kGaps, 128, 0.65F}, y, x, scratch.texture);
  Add({kGaps, 32, 0.35F}, y, x, scratch.texture);
  Add({kBundles, 64, 0.45F}, y, x, scratch.fibre);
  Add({kFibre, 16, 0.33F}, y, x, scratch.fibre);
  Add({kFibre, 4, 0.22F}, y, x, scratch.fibre);
  AddNuclei(y, x, scratch.hematoxylin);
  Colour(scratch, rgb);
}

}  // namespace patchbay::workers
