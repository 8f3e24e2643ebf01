// patchbay config print|check RUN.yaml.
#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/stream/lock_now.h"
#include "runtime/cli/stream/repeat_check.h"
#include "runtime/cli/stream/run_arguments.h"
#include "runtime/cli/stream/run_reports.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/image_record.h"
#include "runtime/client/lock_file.h"
#include "runtime/client/memory_lock.h"
#include "runtime/client/network.h"
#include "runtime/client/node_settings.h"
#include "runtime/client/run_file.h"
#include "runtime/client/stream_paths.h"
#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/planned_manifest.h"
#include "runtime/model/plan/ring_size.h"
#include "runtime/model/stream/stream_geometry.h"

namespace patchbay::cli {
namespace {

constexpr int kIndent = 2;

class ConfigPrintCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"RUN.yaml", "", "a run config; without one, every key and its default", &path_, false},
            SetArgument(set_),
            SplitArgument(split_)};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    if (path_.empty()) return PrintKeys(session);
    PB_ASSIGN_OR_RETURN(
        const client::RunFile run,
        client::ReadRun(
            {.ops = session.environment.ops, .file = path_, .overrides = set_, .split = split_}));
    const Json config = plan::ToJson(run.config);
    // JSON is YAML too: the printed config can be run.
    session.terminal.SayText(config.dump(kIndent, ' ', false, Json::error_handler_t::replace));
    session.terminal.Result(config);
    return ExitCode::kDone;
  }

 private:
  StatusOr<ExitCode> PrintKeys(Session& session) const {
    if (!set_.empty() || !split_.empty()) {
      return UsageError("--set and --split are about a run config: name its file");
    }
    session.terminal.SayText(KeyPage(*session.environment.ops));
    return ExitCode::kDone;
  }

  std::string path_, split_;
  std::vector<std::string> set_;
};

/// The stream of a config, as the tasks that plan streams find it.
struct Checked {
  Json found;
  results::SkippedImages skipped;
};

/// Patches of an epoch by slide and by every value of the table's column `site`; none where images
/// are drawn by weight, whose counts differ from epoch to epoch.
void CountPatches(const plan::Plan& made, const std::vector<client::ImageRecord>& records,
                  Json& found) {
  if (plan::DrawsImages(made.config())) return;
  Json slides = Json::object(), sites = Json::object();
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::uint64_t patches =
        made.bags() ? made.bags()->PatchesOf(static_cast<std::uint32_t>(i))
                    : made.cumulative_patches()[i + 1] - made.cumulative_patches()[i];
    slides[records[i].slide_id] = slides.value(records[i].slide_id, std::uint64_t{0}) + patches;
    const std::string& site = records[i].Cell("site");
    if (!site.empty()) sites[site] = sites.value(site, std::uint64_t{0}) + patches;
  }
  found["patches_by_slide"] = std::move(slides);
  if (!sites.empty()) found["patches_by_site"] = std::move(sites);
}

/// Counts of stores and slides, of their patches, and under class_weights of the pixels of each
/// class that patches are centred at.
Json CountImages(const plan::Plan& made, const std::vector<client::ImageRecord>& records) {
  std::uint64_t stores = 0;
  for (const plan::PlannedImage& image : made.images()) stores += image.kind == "zarr" ? 1 : 0;
  Json found = {{"stores", stores}, {"slides", made.images().size() - stores}};
  CountPatches(made, records, found);
  std::size_t set = 0;
  for (const auto& [name, weight] : made.config().class_weights) {
    std::uint64_t pixels = 0;
    for (const plan::PlannedImage& image : made.images()) pixels += image.places[set].Pixels();
    found["pixels_by_class"][name] = pixels;
    ++set;
  }
  return found;
}

/// Adds the bags of an epoch, those that are padded, and images without a patch.
void AddBags(const plan::Plan& made, Json& found) {
  if (!made.bags()) return;
  found["bags"] = made.bags()->count();
  found["bag_patches"] = made.bags()->size();
  found["short_bags"] = made.bags()->ShortCount();
  found["images_without_bag"] = made.images().size() - made.bags()->count();
}

void SayBags(Terminal& terminal, const Json& found) {
  if (!found.contains("bags")) return;
  const auto number = [&found](const char* key) { return found[key].get<std::uint64_t>(); };
  const std::uint64_t none = number("images_without_bag");
  terminal.Say(StrCat(
      "bags per epoch     ", number("bags"), " of ", number("bag_patches"), " patches (",
      number("short_bags"), " short, so padded",
      none == 0 ? "" : StrCat("; ", Counted(none, "image has", "images have"), " no patch"), ")"));
}

/// "0.5 um/px", "0.25 to 0.5 um/px"; of the images that state it.
std::string TextOfMpps(const Json& mpps) {
  const Json list = mpps.is_array() ? mpps : Json::array({mpps});
  std::vector<double> known;
  for (const Json& mpp : list) {
    if (mpp.is_number()) known.push_back(mpp.get<double>());
  }
  if (known.empty()) return "unknown";
  const auto [low, high] = std::minmax_element(known.begin(), known.end());
  const std::size_t unknown = list.size() - known.size();
  return StrCat(
      *low, *low < *high ? StrCat(" to ", *high) : "", " um/px",
      unknown == 0 ? "" : StrCat(" (", Counted(unknown, "image does", "images do"), " not say)"));
}

/// How many of the images have it from `ingest --assume-mpp`.
std::string TextOfAssumed(const Json& found) {
  const auto assumed = found.value("mpp_assumed", std::uint64_t{0});
  if (assumed == 0) return "";
  if (assumed == found.value("images", std::uint64_t{0})) return " (assumed)";
  return StrCat(" (", Counted(assumed, "image"), ": assumed)");
}

/// Adds the size of a pixel or voxel of a patch; nothing for volumes at their own spacing.
void AddResolution(const plan::Plan& made, const plan::PlannedManifest& manifest, Json& found) {
  found["mpp"] = manifest.mpp;
  if (manifest.mpp_assumed != 0) found["mpp_assumed"] = manifest.mpp_assumed;
  const std::optional<plan::PerAxis>& mm = made.config().spacing;
  if (mm) found["spacing_mm"] = {mm->z, mm->y, mm->x};
  found["volumes"] = std::any_of(made.images().begin(), made.images().end(),
                                 [](const auto& image) { return image.size.z > 1; });
}

/// Adds how many stain fits are those of label sets; nothing without stain_normalize.
void AddStains(const plan::Plan& made, const plan::PlannedManifest& manifest, Json& found) {
  if (plan::FindStainOp(made.config())) found["stains_of_tissue"] = manifest.stains_of_tissue;
}

void SayStains(Terminal& terminal, const Json& found) {
  if (!found.contains("stains_of_tissue")) return;
  const auto of_tissue = found["stains_of_tissue"].get<std::uint64_t>();
  terminal.Say(StrCat("stain fits         ", of_tissue, " of the tissue of a label set, ",
                      found.value("images", std::uint64_t{0}) - of_tissue, " of all pixels"));
}

void SayResolution(Terminal& terminal, const Json& found) {
  if (found.contains("spacing_mm")) {
    std::string text;
    for (const Json& mm : found["spacing_mm"]) {
      text += StrCat(text.empty() ? "" : " x ", mm.get<double>());
    }
    terminal.Say(StrCat("spacing            ", text, " mm (z, y, x)"));
  } else if (!found["volumes"].get<bool>()) {
    terminal.Say(StrCat("resolution         ", TextOfMpps(found["mpp"]), TextOfAssumed(found)));
  } else {
    terminal.Say("spacing            each volume's own");
  }
}

StatusOr<Checked> Check(client::RunFile& run, const std::string& python) {
  PB_ASSIGN_OR_RETURN(const Json result,
                      RunWorkerOp("stream.plan", run.Payload(), JsonOf(run.Manifest()),
                                  client::FunctionsOfUser(python)));
  PB_ASSIGN_OR_RETURN(const client::PlannedRun planned,
                      client::ReadPlannedRun(*run.config.ops, DumpJson(result)));
  const plan::Plan& made = planned.plan;
  PB_ASSIGN_OR_RETURN(const StreamGeometry geometry, made.Geometry(1));
  PB_ASSIGN_OR_RETURN(const std::uint64_t ring_bytes,
                      plan::RingBytes(made.layout(), geometry, run.config.prefetch));
  const std::uint32_t slots = run.config.prefetch + plan::kSlotsBesidePrefetch;
  PB_RETURN_IF_ERROR(
      plan::CheckRingFits({ring_bytes / slots, slots, run.config.prefetch}, AvailableMemory()));
  Checked checked;
  checked.skipped = planned.skipped;
  checked.found = {{"images", made.images().size()},
                   {"patches", geometry.patches_per_epoch},
                   {"batches_per_epoch", BatchesPerEpoch(geometry)},
                   {"batch_bytes", Capacity(geometry) * made.layout().PatchBytes()},
                   {"ring_slots", slots},
                   {"ring_bytes", ring_bytes},
                   {"plan_digest", made.digest().Hex()},
                   {"skipped_files", checked.skipped.files},
                   {"skipped", ToJson(checked.skipped)}};
  PB_ASSIGN_OR_RETURN(const std::vector<client::ImageRecord> records,
                      client::RecordsOf(run, planned));
  PB_RETURN_IF_ERROR(run.AddPlanned(made, planned.manifest));
  checked.found.update(CountImages(made, records));
  AddResolution(made, planned.manifest, checked.found);
  AddStains(made, planned.manifest, checked.found);
  AddBags(made, checked.found);
  return checked;
}

/// Prints a note if batches use an RDMA device and the ring does not fit into the limit on locked
/// memory.
void NoteMemoryLock(Session& session, std::uint64_t ring_bytes) {
  if (client::DeclaredPolicy(session.environment) != NameOf(data::NetworkPolicy::kRdma)) return;
  const std::string advice = client::MemoryLockAdvice(ring_bytes, client::MemoryLockLimit());
  if (!advice.empty()) session.terminal.Note(advice);
}

class ConfigCheckCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"RUN.yaml", "", "a run config", &path_, true},
            SetArgument(set_),
            SplitArgument(split_),
            {"--repeat", "", "make patches twice, and name own functions that do not repeat",
             &repeat_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(
        client::RunFile run,
        client::ReadRun(
            {.ops = session.environment.ops, .file = path_, .overrides = set_, .split = split_}));
    PB_RETURN_IF_ERROR(run.Locate(plan::SettleBatch(run.config, 0, 1)));
    for (const std::string& notice : run.notices) session.terminal.Note(notice);
    const StatusOr<Checked> checked = Check(run, session.environment.python);
    if (!checked.ok()) return run.Locate(checked.status());
    Json found = checked->found;
    const auto number = [&found](const char* key) { return found[key].get<std::uint64_t>(); };
    Terminal& terminal = session.terminal;
    ReportSkipped(terminal, checked->skipped);
    NoteMemoryLock(session, number("ring_bytes"));
    if (Json splits = ReportSplits(terminal, run); !splits.is_null()) {
      found["splits"] = std::move(splits);
    }
    terminal.Say(StrCat("images             ", number("images"), " (stores ", number("stores"),
                        ", slides ", number("slides"), ")"));
    const Json sites = found.value("patches_by_site", Json::object());
    const Json classes = found.value("pixels_by_class", Json::object());
    for (const auto& [site, patches] : sites.items()) {
      terminal.Say(StrCat("  patches of site  ", site, ": ", patches.get<std::uint64_t>()));
    }
    for (const auto& [name, pixels] : classes.items()) {
      terminal.Say(StrCat("  pixels of class  ", name, ": ", pixels.get<std::uint64_t>()));
    }
    SayResolution(terminal, found);
    SayStains(terminal, found);
    SayBags(terminal, found);
    terminal.Say(StrCat("patches per epoch  ", number("patches")));
    terminal.Say(StrCat("batches per epoch  ", number("batches_per_epoch")));
    terminal.Say(StrCat("bytes per batch    ", HumanBytes(number("batch_bytes"))));
    terminal.Say(StrCat("ring               ", HumanBytes(number("ring_bytes")), " in ",
                        number("ring_slots"), " slots"));
    terminal.Say(StrCat("plan               ", found["plan_digest"].get<std::string>()));
    if (run.lock) {
      PB_ASSIGN_OR_RETURN(const CurrentLock now, LockNow(*session.environment.ops, path_));
      const plan::LockDifference difference = plan::DifferenceOf(*run.lock, now.lock);
      terminal.Say(StrCat(
          "lock               ", client::LockPathOf(path_), ": ",
          difference.Empty() ? "current" : difference.Summary() + " (`patchbay lock --update`)"));
      found["lock"] = difference.ToJson();
      found["lock"]["current"] = difference.Empty();
    }
    if (repeat_) PB_RETURN_IF_ERROR(CheckRepeats(session, run, found));
    terminal.Result(found);
    return ExitCode::kDone;
  }

 private:
  /// FailedPrecondition names the functions that do not repeat.
  Status CheckRepeats(Session& session, const client::RunFile& run, Json& found) const {
    const client::RunSource source{
        .ops = session.environment.ops, .file = path_, .overrides = set_};
    const auto report = CheckRepeat(session, source, split_, run.config.augment);
    if (!report.ok()) return run.Locate(report.status());
    if (!report->unrepeatable.empty()) {
      return run.Locate(WithAdvice(
          FailedPrecondition("config check: ", StrJoin(report->unrepeatable, "; "),
                             " of epoch 0 is another when it is made again"),
          "own functions draw from `rng` alone, and do with a patch what does not depend on the "
          "calls before and the patches beside it"));
    }
    found["repeat"] = {{"functions", report->functions}, {"patches", report->patches}};
    session.terminal.Say(report->functions.empty()
                             ? std::string("repeat             no own function")
                             : StrCat("repeat             ", StrJoin(report->functions, ", "), ": ",
                                      Counted(report->patches, "patch", "patches"),
                                      " made twice, alike"));
    return absl::OkStatus();
  }

  std::string path_, split_;
  std::vector<std::string> set_;
  bool repeat_ = false;
};

}  // namespace

std::string KeyPage(const plan::OpTable& ops) {
  std::string yaml = config::YamlOfKeys(plan::RunConfigKeys(ops));
  yaml.pop_back();  // the terminal ends the line
  return yaml;
}

std::unique_ptr<Command> MakeConfigPrint() { return std::make_unique<ConfigPrintCommand>(); }
std::unique_ptr<Command> MakeConfigCheck() { return std::make_unique<ConfigCheckCommand>(); }

}  // namespace patchbay::cli
