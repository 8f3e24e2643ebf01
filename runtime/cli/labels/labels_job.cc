#include "runtime/cli/labels/labels_job.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/results/label_reports.h"

namespace patchbay::cli {
namespace {

/// "STORE: set NAME, REVISION".
void SayRevision(SlideReport& out, const results::LabelReport& row) {
  out.lines.push_back(StrCat(row.store, ": set ", row.set, ", ",
                             row.revision.empty() ? "dry run: nothing was written" : row.revision,
                             row.already_there.value_or(false) ? " (was there already)" : ""));
}

/// `table`: a heading, and of each class name, value and counts.
void SayClasses(SlideReport& out, std::vector<std::vector<std::string>> table,
                std::uint64_t ignored) {
  table.push_back({"ignored", "255", "", StrCat(ignored), ""});
  for (const std::string& line : FormatTable(table, {false, true, true, true, true})) {
    out.lines.push_back(line);
  }
}

std::string TextOfCount(std::uint64_t count, const char* text) {
  return count == 0 ? std::string() : StrCat(", ", count, " ", text);
}

/// Warns of voxels that lie outside the image.
void SayLosses(SlideReport& out, const results::VolumeLabelReport& row) {
  std::string lost;
  for (const results::ClassVoxels& one : row.classes) {
    if (one.lost_voxels == 0) continue;
    lost += StrCat(lost.empty() ? "" : ", ", one.lost_voxels, " of ", one.drawn_voxels, " of ",
                   one.name);
  }
  if (lost.empty()) return;
  out.notes.push_back(StrCat("warning: ", row.file, ": voxels outside the image are lost: ", lost));
}

void SayVolume(SlideReport& out, const results::VolumeLabelReport& row) {
  SayLosses(out, row);
  SayRevision(out, row);
  out.lines.push_back(
      StrCat(row.grid == "same" ? "on the image's grid" : "resampled onto the image's grid",
             ", frame of reference ", row.frame_of_reference,
             TextOfCount(row.overlapping_voxels, "voxels of several segments")));
  for (const auto& [type, count] : row.left_out) {
    out.notes.push_back(StrCat("warning: ", row.file, ": ", Counted(count, "contour"), " of type ",
                               type, " left out: they enclose nothing"));
  }
  std::vector<std::vector<std::string>> table = {
      {"class", "value", "components", "voxels", "volume ml"}};
  for (const results::ClassVoxels& one : row.classes) {
    table.push_back({one.name, StrCat(one.value),
                     one.components ? StrCat(*one.components) : std::string("not indexed"),
                     StrCat(one.voxels), Fixed(one.volume_ml, 3)});
  }
  SayClasses(out, std::move(table), row.ignored_voxels);
}

void SayOutlines(SlideReport& out, const results::DrawnLabelReport& row) {
  std::int64_t outlines = 0;
  std::vector<std::vector<std::string>> table = {
      {"class", "value", "outlines", "pixels", "area mm2"}};
  for (const results::ClassPixels& one : row.classes) {
    outlines += one.outlines;
    table.push_back({one.name, StrCat(one.value), StrCat(one.outlines), StrCat(one.pixels),
                     one.area_mm2 ? Fixed(*one.area_mm2, 4) : std::string("unknown")});
  }
  std::string moved;
  if (row.offset != std::array<std::int64_t, 2>{}) {
    moved = StrCat(", moved by the scanned area's origin ", DumpJson(JsonOf(row.offset)));
  }
  SayRevision(out, row);
  if (row.format == "majority") return SayClasses(out, std::move(table), row.ignored_pixels);
  out.lines.push_back(
      StrCat(outlines, " outlines", TextOfCount(row.clipped, "clipped at the slide's edge"),
             TextOfCount(row.outside, "outside the slide, left out"),
             TextOfCount(row.skipped, "skipped by the class table"),
             TextOfCount(row.without_area, "without area, left out"),
             TextOfCount(row.self_crossing, "cross themselves (filled even-odd)"), moved));
  SayClasses(out, std::move(table), row.ignored_pixels);
}

void SayTissue(SlideReport& out, const results::SlideLabelReport& row) {
  std::uint64_t all = 0, tissue = 0;
  for (const results::ClassPixels& one : row.classes) {
    all += one.pixels;
    if (one.name == "tissue") tissue = one.pixels;
  }
  SayRevision(out, row);
  const double share = all == 0 ? 0 : static_cast<double>(tissue) / static_cast<double>(all);
  std::string line =
      StrCat("  tissue ", Fixed(100 * share, 1), " %, profile ", row.tissue->profile);
  if (row.tissue->no_tissue) line += "; no tissue was found: sampling skips it";
  if (!row.tissue->areas) line += "; no mpp: areas and closing were left out";
  out.lines.push_back(line);
}

/// Prints the result of a row and adds it to those that were made.
template <typename Row>
Status AddRow(const Json& result, const LabelRow& source, void (*say)(SlideReport&, const Row&),
              SlideReport& report, Json& made) {
  PB_ASSIGN_OR_RETURN(Row row, FromJson<Row>(result, "label set"));
  row.store = source.store;
  row.file = source.file;
  say(report, row);
  made.push_back(JsonOf(row));
  return absl::OkStatus();
}

/// From the results of the rows: each set with its revision and content.
Status FillLabelsReport(const protocol::JobRow& job, const Json& results, SlideReport& report) {
  Json made = Json::array();
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const LabelRow& source = report.rows[i];
    const Json& result = results[i];
    if (result.is_null()) {
      FailedSource failed{source.file, OutcomeOf(absl::UnknownError("nothing was made of it")),
                          source.store};
      for (const protocol::FailedTask& task : job.failed) {
        if (task.task.index == 0 || task.task.index == i + 1) failed.outcome = task.outcome;
      }
      report.failed.push_back(std::move(failed));
      continue;
    }
    PB_RETURN_IF_ERROR(result.contains("grid") ? AddRow(result, source, SayVolume, report, made)
                       : result.contains("tissue")
                           ? AddRow(result, source, SayTissue, report, made)
                           : AddRow(result, source, SayOutlines, report, made));
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
