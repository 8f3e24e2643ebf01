// H&E-like tissue as a function of position: any pixel of an endless slide, from a seed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace patchbay::workers {

/// Pink stroma with fibres and gaps, purple nuclei, white background. A pixel depends on the seed
/// and its coordinates alone, so tiles meet without seams in whatever order they are made. Const
/// methods are thread-safe.
class TissueField {
 public:
  static constexpr int kTile = 256;

  explicit TissueField(std::uint64_t seed);

  /// Memory of one rendering thread.
  struct Scratch {
    std::vector<float> mask, texture, fibre, hematoxylin;
  };

  /// The kTile x kTile pixels from (y, x), which must be multiples of kTile; interleaved RGB.
  void Render(std::int64_t y, std::int64_t x, Scratch& scratch, std::uint8_t* rgb) const;

 private:
  struct Octave {
    int field = 0;    ///< number of the noise field
    int spacing = 0;  ///< pixels between its lattice points, a power of two
    float weight = 0;
  };

  float Lattice(int field, std::int64_t y, std::int64_t x) const;
  float At(const Octave& octave, std::int64_t y, std::int64_t x) const;
  void Add(const Octave& octave, std::int64_t y, std::int64_t x, std::vector<float>& out) const;
  void AddNuclei(std::int64_t y, std::int64_t x, std::vector<float>& out) const;
  void Colour(const Scratch& scratch, std::uint8_t* rgb) const;

  static constexpr int kOdSteps = 4096;
  static constexpr float kOdScale = 1024;  ///< steps per unit of optical density

  std::uint64_t seed_;
  std::array<std::uint8_t, kOdSteps> intensity_;  ///< intensity of an optical density
  std::array<float, kTile * kTile> grain_;        ///< sensor noise, by pixel of a tile
};

}  // namespace patchbay::workers
