// The report of an ingest at its end: its stores, their sizes, its failures with their reasons.
#include <map>

#include "runtime/cli/jobs/slide_job.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/results/ingest_summary.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxSlidesNamed = 100'000;
constexpr std::size_t kMaxOutcomeBytes = 1 << 16;

std::string Ratio(std::uint64_t stored, std::uint64_t source) {
  if (source == 0) return "-";
  return Fixed(static_cast<double>(stored) / static_cast<double>(source), 1) + "x";
}

struct ListedStore : results::IngestedStore {
  std::string source;
  std::vector<std::string> copies;  ///< further sources of the same content
};

std::vector<ListedStore> StoresOf(const results::IngestSummary& summary,
                                  const std::vector<std::string>& sources) {
  std::vector<ListedStore> stores;
  std::map<std::string, std::size_t> places;
  for (const results::IngestedStore& store : summary.stores) {
    const std::string source = SourceName(sources, store.source_index);
    const auto [place, is_new] = places.try_emplace(store.name, stores.size());
    if (is_new) {
      stores.push_back({store, source, {}});
      continue;
    }
    ListedStore& first = stores[place->second];
    first.copies.push_back(source);
    first.already_there = first.already_there && store.already_there;
  }
  return stores;
}

Json ObjectOf(const ListedStore& store) {
  Json row = JsonOf<results::IngestedStore>(store);
  row.erase("source_index");
  row.update({{"source", store.source}, {"copies", store.copies}});
  return row;
}

void SayStores(const std::vector<ListedStore>& stores, std::uint64_t source_bytes,
               std::uint64_t stored_bytes, SlideReport& report) {
  if (stores.empty()) return report.lines.push_back("no slide was stored");
  std::vector<std::vector<std::string>> rows = {{"store", "source", "stored", "ratio", "from"}};
  for (const ListedStore& store : stores) {
    rows.push_back({store.name, HumanBytes(store.source_bytes), HumanBytes(store.stored_bytes),
                    Ratio(store.stored_bytes, store.source_bytes),
                    FileName(store.source) + (store.already_there ? " (already there)" : "")});
    for (const std::string& warning : store.warnings) {
      report.notes.push_back(StrCat("warning: ", store.source, ": ", warning));
    }
    for (const std::string& copy : store.copies) {
      rows.push_back({"", "", "", "", StrCat(FileName(copy), " (a copy)")});
    }
  }
  rows.push_back({StrCat("all ", stores.size()), HumanBytes(source_bytes), HumanBytes(stored_bytes),
                  Ratio(stored_bytes, source_bytes), ""});
  report.lines = FormatTable(rows, {false, true, true, true, false});
  report.lines.push_back(StrCat("in ", HumanSeconds(report.seconds), ", into ", report.out));
  if (stored_bytes > 2 * source_bytes) {
    report.lines.emplace_back(
        "Lossless pixels take more room than the slide: 5 to 12 times a JPEG slide is normal;");
    report.lines.emplace_back("`--codec keep` takes the slide's own tiles instead.");
  }
  if (!report.has_pseudonyms) return;
  report.lines.emplace_back(
      "Names are pseudonyms by the key of this PATCHBAY_HOME or its site: another key names the");
  report.lines.emplace_back("same slides otherwise (`patchbay key pseudonym export` copies it).");
}

/// From a results::IngestSummary. Each store stands once, further sources of the same content as
/// its copies.
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
  const std::vector<ListedStore> stores = StoresOf(ingested, report.slides);
  report.sources = report.failed.size() + stores.size() - ingested.without_tissue.size();
  std::uint64_t source = 0, stored = 0;
  Json rows = Json::array();
  for (const ListedStore& store : stores) {
    source += store.source_bytes;
    stored += store.stored_bytes;
    rows.push_back(ObjectOf(store));
  }
  report.own = {
      {"stores", std::move(rows)},
      {"source_bytes", source},
      {"stored_bytes", stored},
      {"ratio",
       source == 0 ? Json() : Json(static_cast<double>(stored) / static_cast<double>(source))}};
  SayStores(stores, source, stored, report);
  return absl::OkStatus();
}

/// The slides of a job that ended before its list was read: all of them have stores, and the
/// folder's table has their sources.
std::vector<std::string> SlidesOfStores(const Json& summary, const SlideJobRequest& request) {
  if (!request.slides.empty()) return request.slides;
  const std::map<std::string, std::string> sources =
      ReadManifestCsv(request.out, "store", "source");
  std::vector<std::string> slides;
  const auto ingested = FromJson<results::IngestSummary>(summary, "ingest summary");
  if (!ingested.ok()) return slides;
  for (const results::IngestedStore& store : ingested->stores) {
    const auto source = sources.find(store.name);
    const auto index = static_cast<std::size_t>(store.source_index);
    if (source == sources.end() || index > kMaxSlidesNamed) continue;
    if (slides.size() <= index) slides.resize(index + 1);
    slides[index] = source->second;
  }
  return slides;
}

/// The file is first written when the slide is opened.
bool NamesAStore(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), path, kMaxOutcomeBytes);
  if (!text.ok()) return false;
  const StatusOr<Json> outcome = ParseJson(*text, path);
  if (!outcome.ok()) return false;
  const StatusOr<std::string> digest = JsonString(*outcome, "digest", path);
  return digest.ok() && !digest->empty();
}

}  // namespace

const StagedJobKind kConvertKind = {.kind = "convert",
                                    .fill = FillIngestReport,
                                    .slides = SlidesOfStores,
                                    .goes_on_without_folder = true};

const StagedJobKind kIngestKind = {.kind = "ingest",
                                   .fill = FillIngestReport,
                                   .slides = SlidesOfStores,
                                   .is_outcome = NamesAStore,
                                   .goes_on_without_folder = true};

}  // namespace patchbay::cli
