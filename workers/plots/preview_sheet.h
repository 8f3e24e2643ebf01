// Contact sheets of stores, and of the patches that a run makes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "workers/plots/drawing.h"

namespace patchbay::workers {

/// Interleaved RGB of uint8.
struct Picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> rgb;

  ConstTensorView View() const;
};

/// A colour with a caption.
struct Swatch {
  Color color;
  std::string text;
};

/// A part of a thumbnail that is shown by its outline.
struct OutlinedArea {
  Color color;
  std::vector<std::uint8_t> inside;  ///< the thumbnail's pixels, 0 or 1
};

inline constexpr Color kTissueColor = {0, 150, 60};
/// The colour of class `value` in outlines, overlays, legends and exports: of the first 64 classes
/// each has another.
Color ClassColor(int value);

/// One image of a dataset.
struct ImageCard {
  std::string name;
  Picture thumbnail;
  std::vector<OutlinedArea> areas;  ///< the last one on top
  std::vector<std::string> facts;   ///< a line each
  std::vector<Swatch> stains;
  std::vector<Swatch> classes;  ///< below the stains; classes that do not fit are counted
  std::string warning;          ///< in words; empty: none
};

/// One patch: the pixels read and the patch made from them, side by side.
struct PatchCard {
  std::string name;
  std::vector<Picture> pictures;      ///< alike in number in all cards of a sheet
  std::vector<std::string> captions;  ///< caption of each picture
  std::vector<std::string> facts;     ///< a line each
};

/// PNG files; the same cards give the same bytes. Names and facts are shortened to fit.
StatusOr<std::string> DrawImageSheet(const std::string& title, const std::vector<ImageCard>& cards);
StatusOr<std::string> DrawPatchSheet(const std::string& title, const std::vector<PatchCard>& cards);

}  // namespace patchbay::workers
