#include "runtime/cli/jobs/ingest_report.h"

#include <map>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/results/ingest_summary.h"

namespace patchbay::cli {
namespace {

std::string Ratio(std::uint64_t stored, std::uint64_t source) {
  if (source == 0) return "-";
  return Fixed(static_cast<double>(stored) / static_cast<double>(source), 1) + "x";
}

/// The object of each store; sources of a store that is listed already are its copies.
Json StoresOf(const results::IngestSummary& summary, const std::vector<std::string>& sources) {
  Json stores = Json::array();
  std::map<std::string, std::size_t> places;
  for (const results::IngestedStore& store : summary.stores) {
    const std::string source = SourceName(sources, store.source_index);
    const auto [place, is_new] = places.try_emplace(store.name, stores.size());
    if (!is_new) {
      Json& first = stores[place->second];
      first["copies"].push_back(source);
      first["already_there"] = first["already_there"].get<bool>() && store.already_there;
      continue;
    }
    Json row = JsonOf(store);
    row.erase("source_index");
    row["source"] = source;
    row["copies"] = Json::array();
    stores.push_back(std::move(row));
  }
  return stores;
}

std::uint64_t BytesOf(const Json& stores, const char* key) {
  std::uint64_t bytes = 0;
  for (const Json& store : stores) bytes += store[key].get<std::uint64_t>();
  return bytes;
}

}  // namespace

Status FillIngestReport(const protocol::JobRow& job, const Json& summary, SlideReport& report) {
  PB_ASSIGN_OR_RETURN(const auto ingested,
                      FromJson<results::IngestSummary>(summary, "ingest summary"));
  const Outcomes outcomes = OutcomesOf(job);
  for (const std::int64_t slide : ingested.missing) {
    report.failed.push_back({SourceName(report.slides, slide), WhyFailed(outcomes, slide)});
  }
  for (const std::int64_t slide : ingested.without_tissue) {
    const Status why = StatusOf(WhyFailed(outcomes, slide));
    report.failed.push_back({SourceName(report.slides, slide),
                             OutcomeOf(Annotate(why, "its store has no set of tissue"))});
  }
  Json stores = StoresOf(ingested, report.slides);
  report.sources = report.failed.size() + stores.size() - ingested.without_tissue.size();
  const std::uint64_t source = BytesOf(stores, "source_bytes"),
                      stored = BytesOf(stores, "stored_bytes");
  report.own = {
      {"stores", std::move(stores)},
      {"source_bytes", source},
      {"stored_bytes", stored},
      {"ratio",
       source == 0 ? Json() : Json(static_cast<double>(stored) / static_cast<double>(source))}};
  return absl::OkStatus();
}

void SayIngestReport(Terminal& terminal, const SlideReport& report) {
  const Json& stores = report.own["stores"];
  if (stores.empty()) return terminal.Say("no slide was stored");
  std::vector<std::vector<std::string>> rows = {{"store", "source", "stored", "ratio", "from"}};
  for (const Json& store : stores) {
    const auto source = store["source"].get<std::string>();
    const auto source_bytes = store["source_bytes"].get<std::uint64_t>();
    const auto stored_bytes = store["stored_bytes"].get<std::uint64_t>();
    rows.push_back(
        {store["name"].get<std::string>(), HumanBytes(source_bytes), HumanBytes(stored_bytes),
         Ratio(stored_bytes, source_bytes),
         FileName(source) + (store["already_there"].get<bool>() ? " (already there)" : "")});
    for (const Json& warning : store["warnings"]) {
      terminal.Note(StrCat("warning: ", source, ": ", warning.get<std::string>()));
    }
    for (const Json& copy : store["copies"]) {
      rows.push_back({"", "", "", "", StrCat(FileName(copy.get<std::string>()), " (a copy)")});
    }
  }
  const auto source_bytes = report.own["source_bytes"].get<std::uint64_t>();
  const auto stored_bytes = report.own["stored_bytes"].get<std::uint64_t>();
  rows.push_back({StrCat("all ", stores.size()), HumanBytes(source_bytes), HumanBytes(stored_bytes),
                  Ratio(stored_bytes, source_bytes), ""});
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
}

}  // namespace patchbay::cli
