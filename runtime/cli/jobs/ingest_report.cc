#include "runtime/cli/jobs/ingest_report.h"

#include <map>

#include "runtime/cli/skipped_files.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

StatusOr<IngestedStore> ParseStore(const Json& row, const std::vector<std::string>& sources) {
  constexpr char kWhat[] = "ingest summary";
  IngestedStore store;
  PB_ASSIGN_OR_RETURN(store.name, JsonString(row, "name", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t source, JsonInt(row, "source_index", kWhat));
  PB_ASSIGN_OR_RETURN(store.source_bytes, JsonCount(row, "source_bytes", kWhat));
  PB_ASSIGN_OR_RETURN(store.stored_bytes, JsonCount(row, "stored_bytes", kWhat));
  PB_ASSIGN_OR_RETURN(store.digest, JsonString(row, "digest", kWhat));
  PB_ASSIGN_OR_RETURN(store.pixel_digest, JsonString(row, "pixel_digest", kWhat));
  PB_ASSIGN_OR_RETURN(store.already_there, JsonBool(row, "already_there", kWhat));
  for (const Json& warning : row.value("warnings", Json::array())) {
    if (warning.is_string()) store.warnings.push_back(warning.get<std::string>());
  }
  store.source = SourceName(sources, source);
  return store;
}

std::string Ratio(std::uint64_t stored, std::uint64_t source) {
  if (source == 0) return "-";
  return Fixed(static_cast<double>(stored) / static_cast<double>(source), 1) + "x";
}

/// Puts the row of a slide whose store has one already under that one.
void AddStore(IngestedStore store, std::map<std::string, std::size_t>& places,
              std::vector<IngestedStore>& stores) {
  const auto [place, is_new] = places.try_emplace(store.name, stores.size());
  if (is_new) return stores.push_back(std::move(store));
  IngestedStore& first = stores[place->second];
  first.copies.push_back(std::move(store.source));
  first.already_there &= store.already_there;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Slides whose store lacks the set of tissue that was asked for.
void AddWithoutTissue(const Json& summary, const Outcomes& outcomes,
                      const std::vector<std::string>& sources, IngestReport& report) {
  for (const Json& slide : summary.value("without_tissue", Json::array())) {
    if (!slide.is_number_integer()) continue;
    ++report.without_tissue;
    const auto number = slide.get<std::int64_t>();
    const Status why = StatusOf(WhyFailed(outcomes, number));
    report.failed.push_back(
        {SourceName(sources, number), OutcomeOf(Annotate(why, "its store has no set of tissue"))});
  }
}

}  // namespace

StatusOr<IngestReport> MakeIngestReport(const protocol::JobRow& job, const Json& summary,
                                        const std::vector<std::string>& sources) {
  IngestReport report;
  report.job = job.job;
  PB_ASSIGN_OR_RETURN(const Json* stores, JsonMember(summary, "stores", "ingest summary"));
  std::map<std::string, std::size_t> places;
  for (const Json& row : *stores) {
    PB_ASSIGN_OR_RETURN(IngestedStore store, ParseStore(row, sources));
    AddStore(std::move(store), places, report.stores);
  }
  PB_ASSIGN_OR_RETURN(const Json* missing, JsonMember(summary, "missing", "ingest summary"));
  const Outcomes outcomes = OutcomesOf(job);
  for (const Json& slide : *missing) {
    if (!slide.is_number_integer()) {
      return absl::InvalidArgumentError("ingest summary: missing: not a list of numbers");
    }
    const auto number = slide.get<std::int64_t>();
    report.failed.push_back({SourceName(sources, number), WhyFailed(outcomes, number)});
  }
  AddWithoutTissue(summary, outcomes, sources, report);
  return report;
}

Json ToJson(const IngestReport& report) {
  Json stores = Json::array(), failed = Json::array();
  std::uint64_t source_bytes = 0, stored_bytes = 0;
  for (const IngestedStore& store : report.stores) {
    source_bytes += store.source_bytes;
    stored_bytes += store.stored_bytes;
    stores.push_back({{"name", store.name},
                      {"source", store.source},
                      {"source_bytes", store.source_bytes},
                      {"stored_bytes", store.stored_bytes},
                      {"digest", store.digest},
                      {"pixel_digest", store.pixel_digest},
                      {"already_there", store.already_there},
                      {"copies", store.copies},
                      {"warnings", store.warnings}});
  }
  for (const FailedSource& failure : report.failed) {
    failed.push_back(FailureToJson(failure));
  }
  return {{"job", report.job},
          {"out", report.out},
          {"seconds", report.seconds},
          {"stores", stores},
          {"failed", failed},
          {"passed_over", report.passed_over},
          {"source_bytes", source_bytes},
          {"stored_bytes", stored_bytes},
          {"ratio", source_bytes == 0 ? Json()
                                      : Json(static_cast<double>(stored_bytes) /
                                             static_cast<double>(source_bytes))}};
}

void SayReport(Terminal& terminal, const IngestReport& report) {
  PrintSkipped(terminal, report.passed_over);
  if (report.stores.empty()) {
    terminal.Say("no slide was stored");
    SayFailed(terminal, report, report.failed.size());
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"store", "source", "stored", "ratio", "from"}};
  std::uint64_t source_bytes = 0, stored_bytes = 0;
  for (const IngestedStore& store : report.stores) {
    source_bytes += store.source_bytes;
    stored_bytes += store.stored_bytes;
    rows.push_back({store.name, HumanBytes(store.source_bytes), HumanBytes(store.stored_bytes),
                    Ratio(store.stored_bytes, store.source_bytes),
                    FileName(store.source) + (store.already_there ? " (already there)" : "")});
    for (const std::string& warning : store.warnings) {
      terminal.Note(StrCat("warning: ", store.source, ": ", warning));
    }
    for (const std::string& copy : store.copies) {
      rows.push_back({"", "", "", "", StrCat(FileName(copy), " (a copy)")});
    }
  }
  rows.push_back({StrCat("all ", report.stores.size()), HumanBytes(source_bytes),
                  HumanBytes(stored_bytes), Ratio(stored_bytes, source_bytes), ""});
  for (const std::string& line : FormatTable(rows, {false, true, true, true, false})) {
    terminal.Say(line);
  }
  terminal.Say(StrCat("in ", HumanSeconds(report.seconds), ", into ", report.out));
  if (stored_bytes > source_bytes) {
    terminal.Say(
        "Lossless pixels take more room than the slide: 5 to 12 times a JPEG slide is normal.");
  }
  if (report.has_pseudonyms) {
    terminal.SayText(
        "Names are pseudonyms of this PATCHBAY_HOME: another home names the same slides "
        "otherwise,\n"
        "unless it shares the key (`patchbay key pseudonym export`).");
  }
  SayFailed(terminal, report, report.failed.size() + report.stores.size() - report.without_tissue);
}

}  // namespace patchbay::cli
