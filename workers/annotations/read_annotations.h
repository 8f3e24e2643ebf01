// From an annotation file to its outlines, whatever program wrote it.
#pragma once

#include <string>
#include <string_view>

#include "workers/annotations/annotation.h"

namespace patchbay::workers {

enum class AnnotationFormat { kGeoJson, kXml, kTiff, kUnknown };

/// By the first bytes, never by the name.
AnnotationFormat FormatOf(std::string_view first_bytes);

/// The outlines of a GeoJSON, ASAP or ImageScope text. InvalidArgument that says what is wrong and
/// where, without the file's name: another format, malformed, beyond a limit, no annotation at all.
StatusOr<Annotations> ReadAnnotations(std::string_view text);

/// GeoJSON: a FeatureCollection, a Feature, a geometry or a list of them, as QuPath and others
/// write them. An outline is called by properties.classification.name (or .names), .classification,
/// .label, .class or .group, the first that is there.
StatusOr<Annotations> ReadGeoJson(std::string_view text);

/// ASAP_Annotations or Annotations (Aperio ImageScope, HALO). ASAP outlines are called by their
/// group, ImageScope's by the name of their layer, else by the layer's attribute, else by the
/// region's text. Regions of negative area are cut out of the others of their layer.
StatusOr<Annotations> ReadAnnotationXml(std::string_view text);

}  // namespace patchbay::workers
