#include "runtime/client/image_record.h"

#include <optional>

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
  return absl::FailedPreconditionError(
      "open run: the running job was planned from another table; give this run another name");
}

/// Records without facts.
StatusOr<std::vector<ImageRecord>> RowsOf(const RunFile& run, const Json& manifest,
                                          const std::vector<std::string>& paths) {
  std::vector<ImageRecord> records;
  if (!run.table) {
    for (const std::string& path : paths) records.emplace_back().slide_id = plan::StemOf(path);
    return records;
  }
  if (!manifest.is_object() || !manifest.contains("rows") || !manifest["rows"].is_array() ||
      manifest["rows"].size() != paths.size()) {
    return OtherTable();
  }
  for (const Json& number : manifest["rows"]) {
    const auto at = number.is_number_unsigned() ? number.get<std::size_t>() : run.rows.size();
    if (at >= run.rows.size()) return OtherTable();
    records.push_back(RecordOf(run, run.table->rows[run.rows[at]]));
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
  const Json manifest = planned.is_object() ? planned.value("manifest", Json()) : Json();
  PB_ASSIGN_OR_RETURN(std::vector<ImageRecord> records, RowsOf(run, manifest, paths));
  PB_ASSIGN_OR_RETURN(const Json* facts, JsonMember(manifest, "facts", "stream plan"));
  if (!facts->is_array() || facts->size() != records.size()) {
    return absl::InvalidArgumentError("stream plan: facts: not those of the images");
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    PB_ASSIGN_OR_RETURN(records[i].facts, results::ImageFactsFromJson((*facts)[i]));
  }
  return records;
}

}  // namespace patchbay::client
