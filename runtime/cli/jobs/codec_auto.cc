#include "runtime/cli/jobs/codec_auto.h"

#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "runtime/cli/worker_run.h"
#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/jobs/codec_choice.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::cli {
namespace {

/// Stores, and unfinished jobs, of a folder that are looked at.
constexpr std::size_t kMostLookedAt = 100;

std::string CodecIn(const Json& settings) {
  return settings.is_object() ? settings.value("codec", std::string()) : "";
}

/// The codecs of the jobs whose folders lie in OUT/.patchbay-ingest.
std::set<std::string> CodecsOfJobs(const Folders& allowed, const std::string& staging) {
  std::set<std::string> codecs;
  const auto jobs = ListFolder(allowed, staging, kMostLookedAt);
  if (!jobs.ok()) return codecs;
  for (const std::string& job : *jobs) {
    const auto text = ReadFile(allowed, StrCat(staging, "/", job, "/manifest.json"), kMaxJsonBytes);
    if (!text.ok()) continue;
    const auto json = ParseJson(*text, "ingest manifest");
    const auto manifest =
        json.ok() ? FromJson<StagedManifest>(*json, "ingest manifest") : json.status();
    if (manifest.ok()) codecs.insert(CodecIn(manifest->settings));
  }
  codecs.erase("");
  return codecs;
}

std::set<std::string> CodecsOfStores(const Folders& allowed, const std::string& out) {
  std::set<std::string> codecs;
  const auto names = ListFolder(allowed, out);
  if (!names.ok()) return codecs;
  std::size_t looked_at = 0;
  for (const std::string& name : *names) {
    if (!name.ends_with(".zarr") || ++looked_at > kMostLookedAt) continue;
    codecs.insert(
        CodecIn(zarr::OwnAttributes(allowed, StrCat(out, "/", name)).value("codec_plan", Json())));
  }
  codecs.erase("");
  return codecs;
}

std::string Seconds(double seconds) {
  constexpr double kFew = 10;
  return seconds < kFew ? Fixed(seconds, 1) + " s" : HumanSeconds(seconds);
}

std::string BoundBy(const BoundTime& time) { return time.is_by_disk ? " (disk)" : " (cores)"; }

std::string PassRate(const CodecMeasures& measures, const BoundTime& pass) {
  return StrCat(Fixed(pass.seconds > 0 ? measures.patches / pass.seconds : 0, 0), "/s",
                BoundBy(pass));
}

void SayMeasures(Terminal& terminal, const CodecMeasures& measures, std::int64_t cores) {
  const auto per_s = [](double rate) { return MegabytesPerSecond(rate); };
  terminal.Note(StrCat("--codec auto: ", Counted(measures.sources, "source"), " (",
                       StrJoin(measures.kinds, ", "), ") of ", HumanBytes(measures.source_bytes),
                       ", read at ", per_s(measures.source_read_rate), "; stores written at ",
                       per_s(measures.write_rate), " and read at ", per_s(measures.read_rate)));
  terminal.Note(StrCat(
      Counted(static_cast<std::uint64_t>(cores), "core"), ", ", HumanBytes(measures.memory_bytes),
      " of memory, ", HumanBytes(measures.free_bytes), " free",
      measures.no_keep.empty() ? std::string() : StrCat("; no keep: ", measures.no_keep)));
}

void SayForecasts(Terminal& terminal, const CodecMeasures& measures, const CodecChoice& choice,
                  std::int64_t epochs) {
  std::vector<std::vector<std::string>> rows = {
      {"codec", "stored", "ratio", "ingest", "patches, first pass", "later passes",
       StrCat("ingest and ", Counted(static_cast<std::uint64_t>(epochs), "pass", "passes"))}};
  for (const CodecForecast& one : choice.forecasts) {
    const double ratio =
        one.stored_bytes / static_cast<double>(std::max<std::uint64_t>(1, measures.source_bytes));
    rows.push_back({one.codec, HumanBytes(static_cast<std::uint64_t>(one.stored_bytes)),
                    Fixed(ratio, 1) + "x", Seconds(one.ingest.seconds) + BoundBy(one.ingest),
                    PassRate(measures, one.first), PassRate(measures, one.later),
                    one.fits ? Seconds(one.seconds) : "does not fit"});
  }
  for (const std::string& line : FormatTable(rows, {false, true, true, true, true, true, true})) {
    terminal.Note(line);
  }
  terminal.Note(StrCat("--codec auto takes ", choice.codec, ": ", choice.why));
}

void Settle(const std::string& codec, SlideJobRequest& request) {
  request.payload["codec"] = codec;
  request.payload.erase("epochs");
  if (codec == "keep") return;
  for (const char* of_keep : {"no_statistics", "self_contained"}) request.payload.erase(of_keep);
}

}  // namespace

StatusOr<std::string> CodecOfFolder(const std::string& out) {
  const Folders allowed = Folders::OfThisUser();
  for (const std::set<std::string>& codecs :
       {CodecsOfJobs(allowed, out + "/.patchbay-ingest"), CodecsOfStores(allowed, out)}) {
    if (codecs.size() == 1) return *codecs.begin();
    if (codecs.empty()) continue;
    return AsUsageError(
        InvalidArgument("--codec auto: ", out, " has stores of ",
                        StrJoin(std::vector<std::string>(codecs.begin(), codecs.end()), " and "),
                        ": name one of them, or another --out"));
  }
  return std::string();
}

Status SettleCodec(Terminal& terminal, const IngestSettings& settings, std::int64_t cores,
                   SlideJobRequest& request) {
  PB_ASSIGN_OR_RETURN(const std::string before, CodecOfFolder(request.out));
  if (!before.empty()) {
    terminal.Note(
        StrCat("--codec auto takes ", before, ", which the stores in ", request.out, " have"));
    Settle(before, request);
    request.choice = {{"codec", before}};
    return absl::OkStatus();
  }
  PB_ASSIGN_OR_RETURN(const Json measured,
                      RunWorkerOp("ingest.measure", request.payload, JsonOf(request.manifest)));
  PB_ASSIGN_OR_RETURN(const auto measures, FromJson<CodecMeasures>(measured, "measurements"));
  const std::int64_t epochs = settings.epochs.value_or(kUsualEpochs);
  SayMeasures(terminal, measures, cores);
  PB_ASSIGN_OR_RETURN(const CodecChoice choice, ChooseCodec(measures, cores, epochs));
  SayForecasts(terminal, measures, choice, epochs);
  Settle(choice.codec, request);
  request.choice = JsonOf(choice);
  request.choice["measured"] = measured;
  return absl::OkStatus();
}

}  // namespace patchbay::cli
