#include "runtime/client/image_record.h"

#include <cstdint>
#include <utility>

#include "runtime/format/json/json_forms.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/planned_manifest.h"

namespace patchbay::client {
namespace {

ImageRecord RecordOf(const RunFile& run, const plan::CohortRow& row) {
  const plan::CohortTable& table = *run.table;
  ImageRecord record;
  record.slide_id = row.slide_id;
  if (!run.config.split_column.empty()) record.split = table.Cell(row, run.config.split_column);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& name = table.columns[i];
    if (name != "path" && name != "slide_id") record.columns.emplace_back(name, row.cells[i]);
  }
  return record;
}

Status OtherTable() {
  return FailedPrecondition(
      "open run: the running job was planned from another table; give this run another name");
}

/// Records without facts.
StatusOr<std::vector<ImageRecord>> RowsOf(const RunFile& run,
                                          const std::vector<std::uint64_t>& rows,
                                          const std::vector<std::string>& paths) {
  std::vector<ImageRecord> records;
  if (!run.table) {
    for (const std::string& path : paths) records.emplace_back().slide_id = plan::StemOf(path);
    return records;
  }
  if (rows.size() != paths.size()) return OtherTable();
  for (const std::uint64_t number : rows) {
    if (number >= run.rows.size()) return OtherTable();
    records.push_back(RecordOf(run, run.RowOf(number)));
  }
  return records;
}

}  // namespace

const std::string& ImageRecord::Cell(std::string_view column) const {
  static const std::string kNone;
  for (const auto& [name, cell] : columns) {
    if (name == column) return cell;
  }
  return kNone;
}

StatusOr<std::vector<ImageRecord>> RecordsOf(const RunFile& run, const Json& planned,
                                             const std::vector<std::string>& paths) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(planned, "manifest", "stream plan"));
  PB_ASSIGN_OR_RETURN(const auto manifest, FromJson<plan::PlannedManifest>(*member, "stream plan"));
  PB_ASSIGN_OR_RETURN(std::vector<ImageRecord> records, RowsOf(run, manifest.rows, paths));
  PB_ASSIGN_OR_RETURN(
      auto facts, FromJson<std::vector<results::ImageFacts>>(manifest.facts, "stream plan: facts"));
  if (facts.size() != records.size()) {
    return InvalidArgument("stream plan: facts: they do not match the images");
  }
  PB_ASSIGN_OR_RETURN(const std::string text, JsonString(planned, "plan", "stream plan"));
  PB_ASSIGN_OR_RETURN(const plan::Plan made, plan::Plan::Parse(*run.config.ops, text));
  if (made.images().size() != records.size()) return OtherTable();
  const auto values = plan::VolumeNeedsOf(made.config()).values;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const plan::PlannedImage& image = made.images()[i];
    records[i].facts = std::move(facts[i]);
    records[i].digest = image.digest;
    if (!values) continue;
    for (int c = 0; c < image.channels; ++c) {
      const auto [mean, std] = image.volume->NumbersOf(c);
      if (values->percentiles) {
        records[i].percentiles.emplace_back(mean, mean + std);
      } else {
        records[i].zscore.emplace_back(mean, std);
      }
    }
  }
  return records;
}

}  // namespace patchbay::client
