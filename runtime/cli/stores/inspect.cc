// patchbay inspect STORE|SLIDE: describes an image.
#include "runtime/format/zarr/inspect.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/paths.h"
#include "runtime/core/counted.h"
#include "runtime/core/printable.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/results/volume_report.h"
#include "runtime/model/source/modality.h"

namespace patchbay::cli {
namespace {

template <typename T>
std::string TextOf(const T& value) {
  const Json json = JsonOf(value);
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_float()) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.6g", json.get<double>());
    return text;
  }
  return json.is_null() ? "unknown" : DumpJson(json);
}

/// "z 2.5 millimeter, y 0.78 millimeter, x unknown".
std::string TextOfSpacing(const std::vector<zarr::AxisReport>& spacing) {
  std::string text;
  for (const zarr::AxisReport& along : spacing) {
    text += StrCat(text.empty() ? "" : ", ", along.axis, " ", TextOf(along.value));
    if (along.unit) text += StrCat(" ", *along.unit);
  }
  return text;
}

/// "-1024 to 3071, mean -942.554".
std::string TextOfRange(const std::optional<zarr::RangeReport>& range) {
  const zarr::RangeReport known = range.value_or(zarr::RangeReport());
  return StrCat(TextOf(known.min), " to ", TextOf(known.max), ", mean ", TextOf(known.mean));
}

std::optional<Modality> KnownModality(const zarr::RecordedFacts& image) {
  Json recorded = {{"acquisition", image.acquisition}};
  if (!image.modality.is_null()) recorded["modality"] = image.modality;
  return RecordedModality(recorded);
}

/// "PT:SUVbw (table); the file states MR".
std::string TextOfModality(const zarr::RecordedFacts& image) {
  const auto known = KnownModality(image);
  if (!known) return "not known";
  const auto record = FromJson<ModalityRecord>(image.modality, "modality");
  if (!record.ok()) return known->ToString();
  return StrCat(known->ToString(), " (", record->from, ")",
                record->stated ? StrCat("; the file states ", record->stated->ToString()) : "");
}

/// The label of a volume's values.
const char* LabelOf(const std::optional<Modality>& modality) {
  return modality && modality->IsHu() ? "HU            " : "values        ";
}

/// "t1: MR (header), 0 to 1203, mean 211.4".
void SayChannel(Terminal& terminal, const Json& channel) {
  const auto name = channel.is_object() ? channel.value("name", Json()) : Json();
  const auto own = FromJson<zarr::RecordedFacts>(channel, "channel", UnknownKeys::kSkipped);
  if (!own.ok() || !name.is_string()) return;
  terminal.Say(StrCat("channel       ", name.get<std::string>(), ": ", TextOfModality(*own), ", ",
                      TextOfRange(own->value_range)));
}

/// Prints what the store of an ingested volume records beyond its levels.
void SayGeometry(Terminal& terminal, const zarr::ImageReport& image) {
  terminal.Say(StrCat("orientation   ", image.orientation));
  if (image.channels.is_array()) {
    for (const Json& channel : image.channels) SayChannel(terminal, channel);
  } else {
    terminal.Say(StrCat("modality      ", TextOfModality(image)));
    terminal.Say(StrCat(LabelOf(KnownModality(image)), TextOfRange(image.value_range)));
  }
  const Json& facts = image.acquisition;
  if (facts.is_object() && facts.contains("verdict")) {
    terminal.Say(StrCat("verdict       ", TextOf(facts["verdict"])));
  }
  for (const std::string& warning : image.warnings) {
    terminal.Say(StrCat("warning       ", warning));
  }
}

/// "Hamamatsu C13220"; the time of the scan where it was asked for.
void SayScanner(Terminal& terminal, const zarr::ScannerReport& scanner) {
  const std::string& model = scanner.model;
  const std::string device =
      StrCat(scanner.manufacturer, scanner.manufacturer.empty() || model.empty() ? "" : " ", model);
  if (!device.empty()) terminal.Say(StrCat("scanner       ", Printable(device)));
  if (!scanner.scanned_at.empty()) {
    terminal.Say(StrCat("scanned       ", Printable(scanner.scanned_at)));
  }
}

void SayImage(Terminal& terminal, const zarr::ImageReport& image) {
  terminal.Say(StrCat("kind          ", TextOf(image.source.kind)));
  terminal.Say(StrCat("source bytes  ", TextOf(image.source.bytes)));
  terminal.Say(StrCat("stored bytes  ", image.stored_bytes));
  terminal.Say(StrCat("um per pixel  ", TextOf(image.mpp), image.mpp_assumed ? " (assumed)" : ""));
  if (!image.spacing.empty()) {
    terminal.Say(StrCat("axes          ", TextOf(image.axes), " of ", image.dtype));
    terminal.Say(StrCat("spacing       ", TextOfSpacing(image.spacing)));
  }
  if (!image.codec.empty()) {
    terminal.Say(
        StrCat("codec         ", image.codec,
               ": the slide's tiles, read by Patchbay and zarr-python 3 with imagecodecs"));
  }
  if (!image.channel_names.empty() && !image.channels.is_array()) {
    terminal.Say(StrCat("channels      ", Printable(StrJoin(image.channel_names, ", "))));
  }
  if (image.objective_power) {
    terminal.Say(StrCat("objective     ", TextOf(image.objective_power)));
  }
  SayScanner(terminal, image.scanner);
  if (!image.icc.empty()) terminal.Say(StrCat("ICC profile   ", image.icc));
  if (image.icc_to_srgb.is_object()) {
    const bool is_usable = !image.icc_to_srgb.contains("fallback");
    terminal.Say(StrCat("ICC lookup    ", is_usable ? "usable" : "unusable"));
  }
  if (!image.label_sets.empty()) {
    terminal.Say(StrCat("label sets    ", StrJoin(image.label_sets, ", ")));
  }
  terminal.Say(StrCat("digest        ", TextOf(image.digest)));
  terminal.Say(StrCat("pixel digest  ", TextOf(image.pixel_digest)));
  std::vector<std::vector<std::string>> rows = {{"level", "shape", "chunk", "downsample"}};
  for (const zarr::LevelReport& level : image.levels) {
    rows.push_back({StrCat(rows.size() - 1), TextOf(level.shape), TextOf(level.chunk),
                    TextOf(level.downsample)});
  }
  for (const std::string& line : FormatTable(rows)) terminal.Say(line);
  if (!image.affine_lps.is_null()) SayGeometry(terminal, image);
}

/// Prints one volume of a folder, or a file.
void SayVolume(Terminal& terminal, const results::VolumeReport& volume) {
  terminal.Say(volume.name);
  const auto say = [&](const char* label, const std::string& text) {
    terminal.Say(StrCat("  ", label, text));
  };
  say("kind          ", StrCat(volume.format, ", ", Counted(volume.files, "file")));
  if (!volume.verdict.empty()) say("verdict       ", volume.reason);
  if (!volume.error.empty()) say("cannot read   ", volume.error);
  if (!volume.shape) return;
  say("voxels        ", StrCat(TextOf(volume.shape), " of ", TextOf(volume.dtype)));
  say("spacing       ", TextOfSpacing(volume.spacing));
  say("orientation   ", volume.orientation);
  say("modality      ", volume.modality ? volume.modality->ToString() : "not known");
  say(LabelOf(volume.modality), TextOfRange(volume.value_range));
  if (!volume.not_finite.empty()) say("warning       ", volume.not_finite);
}

/// kFailed where each volume is damaged, kSomeFailed where some are; a series that is refused for
/// its verdict is none of them.
ExitCode ExitOf(const std::vector<results::VolumeReport>& volumes) {
  const auto damaged = std::count_if(volumes.begin(), volumes.end(), [](const auto& volume) {
    return volume.damaged.value_or(false);
  });
  if (damaged == 0) return ExitCode::kDone;
  return damaged == std::ssize(volumes) ? ExitCode::kFailed : ExitCode::kSomeFailed;
}

class InspectCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"STORE|SLIDE", "", "a store, a slide, a volume's file or a folder of DICOM series",
             &path_, true},
            {"--phi", "", "show when a slide was scanned, which may lead to a patient", &phi_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(path_));
    PB_ASSIGN_OR_RETURN(const Json seen, Inspect(path));
    ExitCode exit = ExitCode::kDone;
    if (seen.contains("volumes")) {
      PB_ASSIGN_OR_RETURN(const auto report, FromJson<results::VolumesReport>(seen, "inspect"));
      for (const auto& volume : report.volumes) SayVolume(session.terminal, volume);
      PrintSkipped(session.terminal, report.skipped_files);
      exit = ExitOf(report.volumes);
    } else {
      PB_ASSIGN_OR_RETURN(const auto report, FromJson<zarr::ImageReport>(seen, "inspect"));
      SayImage(session.terminal, report);
    }
    session.terminal.Result(seen);
    return exit;
  }

 private:
  StatusOr<Json> Inspect(const std::string& path) const {
    if (zarr::IsStore(Folders::OfThisUser(), path)) {
      PB_ASSIGN_OR_RETURN(const auto report, zarr::InspectStore(Folders::OfThisUser(), path));
      return JsonOf(report);
    }
    return RunWorkerOp("inspect", {{"phi", phi_}}, JsonOf(JobManifest{.images = {path}}));
  }

  std::string path_;
  bool phi_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeInspect() { return std::make_unique<InspectCommand>(); }

}  // namespace patchbay::cli
