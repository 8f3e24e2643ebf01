#include "runtime/cli/labels/labels_job.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

/// "STORE: set NAME, REVISION".
void SayRevision(SlideReport& out, const Json& row) {
  out.lines.push_back(StrCat(row.value("store", ""), ": set ", row.value("set", ""), ", ",
                             row.contains("revision") ? row.value("revision", "")
                                                      : std::string("dry run: nothing was written"),
                             row.value("already_there", false) ? " (was there already)" : ""));
}

/// The class table of a report with its counts: of each class the cells behind name and value.
void SayClasses(SlideReport& out, const Json& report, std::vector<std::string> heading,
                const char* ignored, std::vector<std::string> (*cells)(const Json& one)) {
  std::vector<std::vector<std::string>> table = {std::move(heading)};
  for (const Json& one : report.value("classes", Json::array())) {
    std::vector<std::string>& row =
        table.emplace_back(std::vector{one.value("name", ""), StrCat(one.value("value", 0))});
    for (std::string& cell : cells(one)) row.push_back(std::move(cell));
  }
  table.push_back({"ignored", "255", "", StrCat(report.value(ignored, std::uint64_t{0})), ""});
  for (const std::string& line : FormatTable(table, {false, true, true, true, true})) {
    out.lines.push_back(line);
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

void SayVolume(SlideReport& out, const Json& report) {
  out.lines.push_back(StrCat(report.value("grid", "") == "same" ? "on the image's grid"
                                                                : "resampled onto the image's grid",
                             ", frame of reference ", report.value("frame_of_reference", ""),
                             Count(report, "overlapping_voxels", "voxels of several segments")));
  SayClasses(out, report, {"class", "value", "components", "voxels", "volume ml"}, "ignored_voxels",
             VolumeCells);
}

/// Warns of voxels that lie outside the image.
void SayLosses(SlideReport& out, const Json& row) {
  std::string lost;
  for (const Json& one : row.value("classes", Json::array())) {
    const auto voxels = one.value("lost_voxels", std::uint64_t{0});
    if (voxels == 0) continue;
    lost += StrCat(lost.empty() ? "" : ", ", voxels, " of ",
                   one.value("drawn_voxels", std::uint64_t{0}), " of ", one.value("name", ""));
  }
  if (lost.empty()) return;
  out.notes.push_back(
      StrCat("warning: ", row.value("file", ""), ": voxels outside the image are lost: ", lost));
}

void SayImport(SlideReport& out, const Json& row) {
  if (row.contains("grid")) {
    SayLosses(out, row);
    SayRevision(out, row);
    return SayVolume(out, row);
  }
  std::int64_t outlines = 0;
  for (const Json& one : row.value("classes", Json::array())) {
    outlines += one.value("outlines", std::int64_t{0});
  }
  SayRevision(out, row);
  out.lines.push_back(
      StrCat(outlines, " outlines", Count(row, "clipped", "clipped at the slide's edge"),
             Count(row, "outside", "outside the slide, left out"),
             Count(row, "skipped", "skipped by the class table"),
             Count(row, "without_area", "without area, left out"),
             Count(row, "self_crossing", "cross themselves (filled even-odd)"), MovedText(row)));
  SayClasses(out, row, {"class", "value", "outlines", "pixels", "area mm2"}, "ignored_pixels",
             SlideCells);
}

void SayTissue(SlideReport& out, const Json& row) {
  std::uint64_t all = 0, tissue = 0;
  for (const Json& one : row.value("classes", Json::array())) {
    const auto pixels = one.value("pixels", std::uint64_t{0});
    all += pixels;
    if (one.value("name", "") == "tissue") tissue = pixels;
  }
  SayRevision(out, row);
  const double share = all == 0 ? 0 : static_cast<double>(tissue) / static_cast<double>(all);
  const Json found = row.value("tissue", Json::object());
  std::string line =
      StrCat("  tissue ", Fixed(100 * share, 1), " %, profile ", found.value("profile", ""));
  if (found.value("no_tissue", false)) line += "; no tissue was found: sampling skips it";
  if (!found.value("areas", true)) line += "; no mpp: areas and closing were left out";
  out.lines.push_back(line);
}

/// From the results of the rows, as `labels.import` returns them: each set with its revision and
/// content.
Status FillLabelsReport(const protocol::JobRow& job, const Json& results, SlideReport& report) {
  Json made = Json::array();
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    FailedSource failed{report.rows[i].file,
                        OutcomeOf(absl::UnknownError("nothing was made of it")),
                        report.rows[i].store};
    if (results[i].is_null()) {
      for (const protocol::FailedTask& task : job.failed) {
        if (task.task.index == 0 || task.task.index == i + 1) failed.outcome = task.outcome;
      }
      report.failed.push_back(std::move(failed));
      continue;
    }
    Json& row = made.emplace_back(results[i]);
    row["store"] = failed.store;
    if (!failed.source.empty()) row["file"] = failed.source;
    row.contains("tissue") ? SayTissue(report, row) : SayImport(report, row);
  }
  report.sources = report.rows.size();
  report.own = {{"imported", std::move(made)}};
  return absl::OkStatus();
}

}  // namespace

const StagedJobKind kLabelsKind = {.kind = "labels", .fill = FillLabelsReport};

SlideJobRequest LabelsJobOf(const LabelRows& rows, Json payload, const std::string& pseudonym_key) {
  SlideJobRequest request;
  request.kind = "labels";
  request.rows = request.manifest.label_rows = rows.rows;
  request.started_ns = SteadyNowNs();
  request.payload = std::move(payload);
  request.manifest.pseudonym_key = pseudonym_key;
  request.plan.skipped_files = rows.skipped_files;
  return request;
}

}  // namespace patchbay::cli
