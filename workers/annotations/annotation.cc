#include "workers/annotations/annotation.h"

#include <cmath>

namespace patchbay::workers {
namespace {

/// Behind a byte order mark and blanks.
std::string_view Begun(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.substr(0, kMark.size()) == kMark) text.remove_prefix(kMark.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

}  // namespace

Status AnnotationLimits::Add(const Vertex& vertex) {
  const bool is_near = std::abs(vertex.x) <= kMaxCoordinate && std::abs(vertex.y) <= kMaxCoordinate;
  if (!is_near) {  // also where one is not a number
    return InvalidArgument("coordinate (", vertex.x, ", ", vertex.y, ") is not a pixel of a slide");
  }
  if (++vertices_ <= kMaxVertices) return absl::OkStatus();
  return InvalidArgument("more than ", kMaxVertices, " vertices");
}

Status AnnotationLimits::AddOutline() {
  if (++outlines_ <= kMaxOutlines) return absl::OkStatus();
  return InvalidArgument("more than ", kMaxOutlines, " annotations");
}

AnnotationFormat FormatOf(std::string_view first_bytes) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (first_bytes.substr(0, magic.size()) == magic) return AnnotationFormat::kTiff;
  }
  const std::string_view begun = Begun(first_bytes);
  if (begun.empty()) return AnnotationFormat::kUnknown;
  if (begun[0] == '{' || begun[0] == '[') return AnnotationFormat::kGeoJson;
  return begun[0] == '<' ? AnnotationFormat::kXml : AnnotationFormat::kUnknown;
}

StatusOr<Annotations> ReadAnnotations(std::string_view text, std::string_view class_from) {
  const std::string_view begun = Begun(text);
  if (begun.empty()) return InvalidArgument("the file is empty");
  switch (FormatOf(begun)) {
    case AnnotationFormat::kGeoJson: {
      PB_ASSIGN_OR_RETURN(Annotations out, ReadGeoJson(begun, class_from));
      if (out.outlines.empty() && out.without_area == 0) {
        return InvalidArgument("no annotation in it");
      }
      return out;
    }
    case AnnotationFormat::kXml: {
      if (!class_from.empty()) {
        return InvalidArgument("XML has no property '", class_from,
                               "': --class-from is for GeoJSON");
      }
      PB_ASSIGN_OR_RETURN(Annotations out, ReadAnnotationXml(begun));
      if (out.outlines.empty() && out.without_area == 0) {
        return InvalidArgument("no annotation in it");
      }
      return out;
    }
    default:
      return InvalidArgument("neither GeoJSON, nor XML of ASAP or ImageScope, nor a TIFF mask");
  }
}

}  // namespace patchbay::workers
