// The letters of the pictures: DejaVu Sans, part of this program, read by FreeType. Fonts that are
// installed on a machine are never looked at. The only file that includes FreeType.
#pragma once

#include <memory>
#include <string_view>

struct _cairo;
struct FT_FaceRec_;
struct FT_LibraryRec_;

namespace patchbay::workers {

/// One weight of the font. Lengths are in ems, so that text has the same shape at every size;
/// outlines are unhinted. Text is UTF-8, laid out one character after the other with the font's
/// kerning; a character that the font lacks, or a malformed byte, is an empty box.
class Font {
 public:
  static Font Regular();
  static Font Bold();

  double WidthOf(std::string_view text) const;

  /// Adds the outlines of `text`, begun `left` ems from the origin, to the path of `context`, whose
  /// unit is one em and whose y points up.
  void AddOutline(std::string_view text, double left, _cairo* context) const;

 private:
  struct Release {
    void operator()(FT_LibraryRec_* library) const;
    void operator()(FT_FaceRec_* face) const;
  };

  explicit Font(std::string_view file);

  std::unique_ptr<FT_LibraryRec_, Release> library_;  // outlives the face
  std::unique_ptr<FT_FaceRec_, Release> face_;
};

}  // namespace patchbay::workers
