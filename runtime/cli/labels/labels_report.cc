#include "runtime/cli/labels/labels_report.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

/// "STORE: set NAME, REVISION".
void SayRevision(Terminal& terminal, const LabelledRow& row) {
  terminal.Say(StrCat(row.store, ": set ", row.report.value("set", ""), ", ",
                      row.report.contains("revision") ? row.report.value("revision", "")
                                                      : std::string("dry run: nothing was written"),
                      row.report.value("already_there", false) ? " (was there already)" : ""));
}

/// The class table of a report with its counts: of each class the cells behind name and value.
void SayClasses(Terminal& terminal, const Json& report, std::vector<std::string> heading,
                const char* ignored, std::vector<std::string> (*cells)(const Json& one)) {
  std::vector<std::vector<std::string>> table = {std::move(heading)};
  for (const Json& one : report.value("classes", Json::array())) {
    std::vector<std::string>& row =
        table.emplace_back(std::vector{one.value("name", ""), StrCat(one.value("value", 0))});
    for (std::string& cell : cells(one)) row.push_back(std::move(cell));
  }
  table.push_back({"ignored", "255", "", StrCat(report.value(ignored, std::uint64_t{0})), ""});
  for (const std::string& line : FormatTable(table, {false, true, true, true, true})) {
    terminal.Say(line);
  }
}

std::vector<std::string> SlideCells(const Json& one) {
  const Json area = one.value("area_mm2", Json());
  return {StrCat(one.value("outlines", std::int64_t{0})),
          StrCat(one.value("pixels", std::uint64_t{0})),
          area.is_number() ? Fixed(area.get<double>(), 4) : std::string("unknown")};
}

std::vector<std::string> VolumeCells(const Json& one) {
  const Json components = one.value("components", Json());
  return {components.is_null() ? std::string("not indexed") : DumpJson(components),
          StrCat(one.value("voxels", std::uint64_t{0})), Fixed(one.value("volume_ml", 0.0), 3)};
}

std::string Count(const Json& report, const char* key, const char* text) {
  const auto count = report.value(key, std::int64_t{0});
  return count == 0 ? std::string() : StrCat(", ", count, " ", text);
}

/// A remark if coordinates counted from the scanned area.
std::string MovedText(const Json& report) {
  const Json offset = report.value("offset", Json());
  if (!offset.is_array() || offset.size() != 2 || offset == Json({0, 0})) return "";
  return StrCat(", moved by the scanned area's origin ", DumpJson(offset));
}

void SayVolume(Terminal& terminal, const Json& report) {
  terminal.Say(StrCat(report.value("grid", "") == "same" ? "on the image's grid"
                                                         : "resampled onto the image's grid",
                      ", frame of reference ", report.value("frame_of_reference", ""),
                      Count(report, "overlapping_voxels", "voxels of several segments")));
  SayClasses(terminal, report, {"class", "value", "components", "voxels", "volume ml"},
             "ignored_voxels", VolumeCells);
}

/// Warns of voxels that lie outside the image.
void SayLosses(Terminal& terminal, const LabelledRow& row) {
  std::string lost;
  for (const Json& one : row.report.value("classes", Json::array())) {
    const auto voxels = one.value("lost_voxels", std::uint64_t{0});
    if (voxels == 0) continue;
    lost += StrCat(lost.empty() ? "" : ", ", voxels, " of ",
                   one.value("drawn_voxels", std::uint64_t{0}), " of ", one.value("name", ""));
  }
  if (lost.empty()) return;
  terminal.Note(StrCat("warning: ", row.file, ": voxels outside the image are lost: ", lost));
}

void SayImport(Terminal& terminal, const LabelledRow& row) {
  const Json& report = row.report;
  if (report.contains("grid")) {
    SayLosses(terminal, row);
    SayRevision(terminal, row);
    return SayVolume(terminal, report);
  }
  std::int64_t outlines = 0;
  for (const Json& one : report.value("classes", Json::array())) {
    outlines += one.value("outlines", std::int64_t{0});
  }
  SayRevision(terminal, row);
  terminal.Say(StrCat(
      outlines, " outlines", Count(report, "clipped", "clipped at the slide's edge"),
      Count(report, "outside", "outside the slide, left out"),
      Count(report, "skipped", "skipped by the class table"),
      Count(report, "without_area", "without area, left out"),
      Count(report, "self_crossing", "cross themselves (filled even-odd)"), MovedText(report)));
  SayClasses(terminal, report, {"class", "value", "outlines", "pixels", "area mm2"},
             "ignored_pixels", SlideCells);
}

void SayTissue(Terminal& terminal, const LabelledRow& row) {
  std::uint64_t all = 0, tissue = 0;
  for (const Json& one : row.report.value("classes", Json::array())) {
    const auto pixels = one.value("pixels", std::uint64_t{0});
    all += pixels;
    if (one.value("name", "") == "tissue") tissue = pixels;
  }
  SayRevision(terminal, row);
  const double share = all == 0 ? 0 : static_cast<double>(tissue) / static_cast<double>(all);
  const Json found = row.report.value("tissue", Json::object());
  std::string line =
      StrCat("  tissue ", Fixed(100 * share, 1), " %, profile ", found.value("profile", ""));
  if (found.value("no_tissue", false)) line += "; no tissue was found: sampling passes it over";
  if (!found.value("areas", true)) line += "; no mpp: areas and closing were left out";
  terminal.Say(line);
}

}  // namespace

void SayLabels(Terminal& terminal, const LabelledRow& row) {
  return row.report.contains("tissue") ? SayTissue(terminal, row) : SayImport(terminal, row);
}

}  // namespace patchbay::cli
