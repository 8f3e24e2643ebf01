#include "runtime/client/image_record.h"

#include <cstdint>
#include <utility>

#include "runtime/format/json/json_forms.h"
#include "runtime/format/json/json_stream.h"
#include "runtime/model/plan/image_volumes.h"

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
                                          const plan::PlannedManifest& manifest) {
  std::vector<ImageRecord> records;
  if (!run.table) {
    for (const std::string& path : manifest.Paths()) {
      records.emplace_back().slide_id = plan::StemOf(path);
    }
    return records;
  }
  if (manifest.rows.size() != manifest.images.size()) return OtherTable();
  for (const std::uint64_t number : manifest.rows) {
    if (number >= run.rows.size()) return OtherTable();
    records.push_back(RecordOf(run, run.RowOf(number)));
  }
  return records;
}

/// The facts of images one by one: as values of JSON all of them would take much memory.
StatusOr<std::vector<results::ImageFacts>> FactsFrom(std::string_view text) {
  constexpr std::string_view kFacts = "stream plan: facts";
  std::vector<results::ImageFacts> facts;
  PB_ASSIGN_OR_RETURN(const auto elements, ElementsOfJson(text, kFacts));
  for (const std::string_view element : elements) {
    PB_ASSIGN_OR_RETURN(const Json one, ParseJson(element, kFacts));
    PB_ASSIGN_OR_RETURN(facts.emplace_back(), FromJson<results::ImageFacts>(one, kFacts));
  }
  return facts;
}

}  // namespace

const std::string& ImageRecord::Cell(std::string_view column) const {
  static const std::string kNone;
  for (const auto& [name, cell] : columns) {
    if (name == column) return cell;
  }
  return kNone;
}

StatusOr<PlannedRun> ReadPlannedRun(const plan::OpTable& ops, std::string_view result) {
  constexpr std::string_view kWhat = "stream plan";
  PB_ASSIGN_OR_RETURN(const JsonMembers members, MembersOfJson(result, kWhat));
  const auto member = [&](const char* key) {
    const auto found = members.find(key);
    return found == members.end() ? std::string_view("null") : found->second;
  };
  PB_ASSIGN_OR_RETURN(const Json text, ParseJson(member("plan"), kWhat));
  if (!text.is_string()) return InvalidArgument(kWhat, ": key 'plan': expected text");
  PB_ASSIGN_OR_RETURN(plan::Plan made, plan::Plan::Parse(ops, text.get_ref<const std::string&>()));
  PB_ASSIGN_OR_RETURN(const JsonMembers where, MembersOfJson(member("manifest"), kWhat));
  Json manifest = Json::object();
  PlannedRun planned{std::move(made), {}, {}, {}};
  for (const auto& [key, part] : where) {
    if (key == "facts") {
      PB_ASSIGN_OR_RETURN(planned.facts, FactsFrom(part));
    } else {
      PB_ASSIGN_OR_RETURN(manifest[key], ParseJson(part, kWhat));
    }
  }
  PB_ASSIGN_OR_RETURN(planned.manifest, FromJson<plan::PlannedManifest>(manifest, kWhat));
  if (planned.facts.size() != planned.manifest.images.size()) {
    return InvalidArgument("stream plan: facts: they do not match the images");
  }
  PB_ASSIGN_OR_RETURN(const Json left_out, ParseJson(member("skipped"), kWhat));
  planned.skipped =
      FromJson<results::SkippedImages>(left_out, kWhat).value_or(results::SkippedImages{});
  return planned;
}

StatusOr<std::vector<ImageRecord>> RecordsOf(const RunFile& run, const PlannedRun& planned) {
  const plan::Plan& made = planned.plan;
  PB_ASSIGN_OR_RETURN(std::vector<ImageRecord> records, RowsOf(run, planned.manifest));
  if (made.images().size() != records.size()) return OtherTable();
  const auto values = plan::VolumeNeedsOf(made.config()).values;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const plan::PlannedImage& image = made.images()[i];
    records[i].facts = planned.facts[i];
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
