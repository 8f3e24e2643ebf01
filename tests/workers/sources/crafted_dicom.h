// DICOM slides made in memory, element by element: whole ones, and ones that contradict themselves.
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/workers/sources/pattern_image.h"

namespace patchbay::workers {

inline std::string LittleEndian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

/// An element, or with an empty type one of an implicit data set.
inline std::string DicomElement(std::uint32_t tag, const std::string& type, std::string value) {
  if (value.size() % 2 != 0) value.push_back(type == "UI" ? '\0' : ' ');
  std::string head = LittleEndian(tag >> 16, 2) + LittleEndian(tag & 0xFFFF, 2) + type;
  const bool is_long = type == "SQ" || type == "OB" || type == "OV" || type == "OW";
  if (is_long) head += LittleEndian(0, 2);
  return head + LittleEndian(value.size(), is_long || type.empty() ? 4 : 2) + value;
}

inline std::string DicomItem(const std::string& value) {
  return LittleEndian(0xFFFE, 2) + LittleEndian(0xE000, 2) + LittleEndian(value.size(), 4) + value;
}

/// The same sequence with delimiters in place of lengths.
inline std::string OpenSequence(std::uint32_t tag, const std::string& item) {
  const auto end = [](std::uint32_t element) {
    return LittleEndian(0xFFFE, 2) + LittleEndian(element, 2) + LittleEndian(0, 4);
  };
  return LittleEndian(tag >> 16, 2) + LittleEndian(tag & 0xFFFF, 2) + "SQ" + LittleEndian(0, 2) +
         LittleEndian(0xFFFFFFFF, 4) + LittleEndian(0xFFFE, 2) + LittleEndian(0xE000, 2) +
         LittleEndian(0xFFFFFFFF, 4) + item + end(0xE00D) + end(0xE0DD);
}

/// One instance. Frames are of the whole level in order, or at `places`.
struct CraftedDicom {
  std::uint32_t width = 300, height = 200, tile = 64;
  std::uint16_t samples = 3, bits = 8, planar = 0;
  std::string syntax = "1.2.840.10008.1.2.1", photometric = "RGB", organization = "TILED_FULL";
  std::string image_type = "ORIGINAL\\PRIMARY\\VOLUME\\NONE", series = "1.2.3", number = "1";
  std::string sop_class = "1.2.840.10008.5.1.4.1.1.77.1.6";
  std::string spacing = "0.0005\\0.00025";
  std::string plane_spacing;  ///< SpacingBetweenSlices, mm; "": not stated
  std::string concatenation;
  std::uint32_t first_frame = 0;
  std::vector<std::string> frames;
  std::vector<std::pair<std::int32_t, std::int32_t>> places;  ///< row, column, from 1 on
  std::vector<std::string> frame_paths;  ///< identifiers of each place's, or none
  std::vector<double> focal_um;          ///< heights of places, or none
  enum class Table { kNone, kBasic, kExtended } table = Table::kNone;
  std::map<std::uint32_t, std::string> more;  ///< whole elements of the data set by tag

  bool IsImplicit() const { return syntax == "1.2.840.10008.1.2"; }
  std::uint32_t Columns() const { return (width + tile - 1) / tile; }
  std::uint32_t Rows() const { return (height + tile - 1) / tile; }
};

/// Uncompressed frames of the values at every place.
inline std::vector<std::string> PatternFrames(const CraftedDicom& dicom, std::uint32_t seed = 1) {
  std::vector<std::string> frames;
  for (std::uint32_t i = 0; i < dicom.Columns() * dicom.Rows(); ++i) {
    std::string frame;
    for (std::uint32_t n = 0; n < dicom.tile * dicom.tile * dicom.samples; ++n) {
      const std::uint32_t pixels = dicom.tile * dicom.tile;
      const std::uint32_t pixel = dicom.planar == 1 ? n % pixels : n / dicom.samples;
      const std::uint32_t sample = dicom.planar == 1 ? n / pixels : n % dicom.samples;
      frame.push_back(static_cast<char>(PatternAt(
          i / dicom.Columns() * dicom.tile + pixel / dicom.tile,
          i % dicom.Columns() * dicom.tile + pixel % dicom.tile, static_cast<int>(sample), seed)));
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

inline std::string PixelsOf(const CraftedDicom& dicom, bool is_compressed) {
  const std::string type = dicom.IsImplicit() ? "" : "OB";
  if (!is_compressed) {
    std::string all;
    for (const std::string& frame : dicom.frames) all += frame;
    return DicomElement(0x7FE00010, type, all);
  }
  std::string items, offsets, far_offsets, lengths;
  for (std::string frame : dicom.frames) {
    offsets += LittleEndian(items.size(), 4);
    far_offsets += LittleEndian(items.size(), 8);
    lengths += LittleEndian(frame.size(), 8);
    if (frame.size() % 2 != 0) frame.push_back('\0');
    items += DicomItem(frame);
  }
  std::string out;
  if (dicom.table == CraftedDicom::Table::kExtended) {
    out = DicomElement(0x7FE00001, "OV", far_offsets) + DicomElement(0x7FE00002, "OV", lengths);
  }
  return out + LittleEndian(0x7FE0, 2) + LittleEndian(0x0010, 2) + "OB" + LittleEndian(0, 2) +
         LittleEndian(0xFFFFFFFF, 4) +
         DicomItem(dicom.table == CraftedDicom::Table::kBasic ? offsets : "") + items +
         LittleEndian(0xFFFE, 2) + LittleEndian(0xE0DD, 2) + LittleEndian(0, 4);
}

inline std::string DicomBytes(const CraftedDicom& d) {
  const auto element = [&](std::uint32_t tag, const char* type, const std::string& value) {
    return std::pair(tag, DicomElement(tag, d.IsImplicit() ? "" : type, value));
  };
  std::map<std::uint32_t, std::string> set;
  const auto text = [&](std::uint32_t tag, const char* type, const std::string& value) {
    if (!value.empty()) set.insert(element(tag, type, value));
  };
  text(0x00080008, "CS", d.image_type);
  text(0x00080016, "UI", d.sop_class);
  text(0x00100010, "PN", "Doe^Jane");
  text(0x0020000E, "UI", d.series);
  text(0x00200013, "IS", d.number);
  text(0x00209161, "UI", d.concatenation);
  if (!d.concatenation.empty()) {
    set.insert(element(0x00209228, "UL", LittleEndian(d.first_frame, 4)));
  }
  text(0x00209311, "CS", d.organization);
  text(0x00280004, "CS", d.photometric);
  text(0x00280008, "IS", std::to_string(d.frames.size()));
  const std::pair<std::uint32_t, std::uint32_t> shorts[] = {
      {0x00280002, d.samples}, {0x00280006, d.planar}, {0x00280010, d.tile},
      {0x00280011, d.tile},    {0x00280100, d.bits},   {0x00280103, 0}};
  for (const auto& [tag, value] : shorts) set.insert(element(tag, "US", LittleEndian(value, 2)));
  set.insert(element(0x00480006, "UL", LittleEndian(d.width, 4)));
  set.insert(element(0x00480007, "UL", LittleEndian(d.height, 4)));
  const std::string measures =
      (d.plane_spacing.empty() ? "" : DicomElement(0x00180088, "DS", d.plane_spacing)) +
      DicomElement(0x00280030, d.IsImplicit() ? "" : "DS", d.spacing);
  const auto sequence = [&](std::uint32_t tag, const std::string& items) {
    return DicomElement(tag, d.IsImplicit() ? "" : "SQ", items);
  };
  set[0x52009229] = sequence(0x52009229, DicomItem(sequence(0x00289110, DicomItem(measures))));
  std::string per_frame;
  for (std::size_t i = 0; i < d.places.size(); ++i) {
    const auto [row, column] = d.places[i];
    const auto number = [&](std::uint32_t tag, std::int32_t value) {
      return DicomElement(tag, d.IsImplicit() ? "" : "SL",
                          LittleEndian(static_cast<std::uint32_t>(value), 4));
    };
    const std::string height =
        i < d.focal_um.size() ? DicomElement(0x0040074A, "DS", std::to_string(d.focal_um[i])) : "";
    const std::string place = height + number(0x0048021E, column) + number(0x0048021F, row);
    const std::string path =
        i < d.frame_paths.size()
            ? sequence(0x00480207, DicomItem(DicomElement(0x00480106, "SH", d.frame_paths[i])))
            : "";
    per_frame += DicomItem((d.IsImplicit() ? sequence(0x0048021A, DicomItem(place))
                                           : OpenSequence(0x0048021A, place)) +
                           path);
  }
  if (!per_frame.empty()) set[0x52009230] = sequence(0x52009230, per_frame);
  for (const auto& [tag, bytes] : d.more) set[tag] = bytes;
  const std::string syntax = DicomElement(0x00020010, "UI", d.syntax);
  std::string bytes = std::string(128, '\0') + "DICM" +
                      DicomElement(0x00020000, "UL", LittleEndian(syntax.size(), 4)) + syntax;
  for (const auto& [tag, one] : set) bytes += one;
  return bytes + PixelsOf(d, d.syntax.starts_with("1.2.840.10008.1.2.4"));
}

inline void WriteDicom(const std::string& path, const CraftedDicom& dicom) {
  std::ofstream(path, std::ios::binary) << DicomBytes(dicom);
}

}  // namespace patchbay::workers
