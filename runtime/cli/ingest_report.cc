#include "runtime/cli/ingest_report.h"

#include <map>

#include "runtime/base/strings.h"

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
  store.source = SourceName(sources, source);
  return store;
}

std::string Ratio(std::uint64_t stored, std::uint64_t source) {
  if (source == 0) return "-";
  return Fixed(static_cast<double>(stored) / static_cast<double>(source), 1) + "x";
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

StatusOr<IngestReport> MakeIngestReport(const protocol::JobRow& job, const Json& summary,
                                        const std::vector<std::string>& sources) {
  IngestReport report;
  report.job = job.job;
  PB_ASSIGN_OR_RETURN(const Json* stores, JsonMember(summary, "stores", "ingest summary"));
  for (const Json& row : *stores) {
    PB_ASSIGN_OR_RETURN(report.stores.emplace_back(), ParseStore(row, sources));
  }
  PB_ASSIGN_OR_RETURN(const Json* missing, JsonMember(summary, "missing", "ingest summary"));
  const std::map<std::int64_t, std::string> reasons = ReasonsOf(job);
  for (const Json& slide : *missing) {
    if (!slide.is_number_integer()) {
      return absl::InvalidArgumentError("ingest summary: missing: not a list of numbers");
    }
    const auto number = slide.get<std::int64_t>();
    const auto reason = reasons.find(number);
    report.failed.push_back(
        {SourceName(sources, number), reason == reasons.end() ? "not finished" : reason->second});
  }
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
                      {"already_there", store.already_there}});
  }
  for (const FailedSource& failure : report.failed) {
    failed.push_back({{"source", failure.source}, {"reason", failure.reason}});
  }
  return {{"job", report.job},
          {"out", report.out},
          {"seconds", report.seconds},
          {"stores", stores},
          {"failed", failed},
          {"source_bytes", source_bytes},
          {"stored_bytes", stored_bytes},
          {"ratio", source_bytes == 0 ? Json()
                                      : Json(static_cast<double>(stored_bytes) /
                                             static_cast<double>(source_bytes))}};
}

void SayReport(Terminal& terminal, const IngestReport& report) {
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
  }
  rows.push_back({StrCat("all ", report.stores.size()), HumanBytes(source_bytes),
                  HumanBytes(stored_bytes), Ratio(stored_bytes, source_bytes), ""});
  for (const std::string& line : FormatTable(rows, {false, true, true, true, false})) {
    terminal.Say(line);
  }
  terminal.Say(StrCat("in ", HumanSeconds(report.seconds), ", into ", report.out));
  terminal.Say(
      "Lossless pixels take more room than the slide: 5 to 12 times a JPEG slide is normal.");
  SayFailed(terminal, report, report.failed.size() + report.stores.size());
}

}  // namespace patchbay::cli
