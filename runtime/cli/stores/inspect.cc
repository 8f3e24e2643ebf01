// patchbay inspect STORE|SLIDE: describes an image.
#include <cstdio>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/paths.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/model/jobs/job_manifest.h"

namespace patchbay::cli {
namespace {

std::string TextOf(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.6g", value.get<double>());
    return text;
  }
  return value.is_null() ? "unknown" : DumpJson(value);
}

/// A member of an object, or null.
Json Member(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() ? *it : Json();
}

/// "z 2.5 millimeter, y 0.78 millimeter, x unknown".
std::string SpacingText(const Json& spacing) {
  std::string text;
  for (const Json& axis : spacing) {
    text += StrCat(text.empty() ? "" : ", ", TextOf(Member(axis, "axis")), " ",
                   TextOf(Member(axis, "value")));
    if (Member(axis, "unit").is_string()) text += StrCat(" ", TextOf(Member(axis, "unit")));
  }
  return text;
}

void SayImage(Terminal& terminal, const Json& image) {
  const Json source = Member(image, "source");
  terminal.Say(StrCat("kind          ", TextOf(Member(source, "kind"))));
  terminal.Say(StrCat("source bytes  ", TextOf(Member(source, "bytes"))));
  terminal.Say(StrCat("stored bytes  ", TextOf(Member(image, "stored_bytes"))));
  terminal.Say(StrCat("um per pixel  ", TextOf(Member(image, "mpp")),
                      image.contains("mpp_assumed") ? " (assumed)" : ""));
  if (image.contains("spacing")) {
    terminal.Say(StrCat("axes          ", TextOf(Member(image, "axes")), " of ",
                        TextOf(Member(image, "dtype"))));
    terminal.Say(StrCat("spacing       ", SpacingText(Member(image, "spacing"))));
  }
  terminal.Say(StrCat("digest        ", TextOf(Member(image, "digest"))));
  terminal.Say(StrCat("pixel digest  ", TextOf(Member(image, "pixel_digest"))));
  std::vector<std::vector<std::string>> rows = {{"level", "shape", "chunk", "downsample"}};
  const Json levels = Member(image, "levels");
  for (std::size_t i = 0; levels.is_array() && i < levels.size(); ++i) {
    rows.push_back({StrCat(i), TextOf(Member(levels[i], "shape")),
                    TextOf(Member(levels[i], "chunk")), TextOf(Member(levels[i], "downsample"))});
  }
  for (const std::string& line : FormatTable(rows)) terminal.Say(line);
}

/// "-1024 to 3071, mean -942.554".
std::string RangeText(const Json& range) {
  return StrCat(TextOf(Member(range, "min")), " to ", TextOf(Member(range, "max")), ", mean ",
                TextOf(Member(range, "mean")));
}

/// Prints one volume of a folder, or a file.
void SayVolume(Terminal& terminal, const Json& volume) {
  terminal.Say(TextOf(Member(volume, "name")));
  const auto say = [&](const char* label, const std::string& text) {
    terminal.Say(StrCat("  ", label, text));
  };
  say("kind          ",
      StrCat(TextOf(Member(volume, "format")), ", ", Counted(volume.value("files", 0u), "file")));
  if (volume.contains("verdict")) say("verdict       ", TextOf(Member(volume, "reason")));
  if (volume.contains("error")) say("cannot read   ", TextOf(Member(volume, "error")));
  if (!volume.contains("shape")) return;
  say("voxels        ",
      StrCat(TextOf(Member(volume, "shape")), " of ", TextOf(Member(volume, "dtype"))));
  say("spacing       ", SpacingText(Member(volume, "spacing")));
  say("orientation   ", TextOf(Member(volume, "orientation")));
  say("HU            ", RangeText(Member(volume, "value_range")));
  if (volume.contains("not_finite")) say("warning       ", TextOf(Member(volume, "not_finite")));
}

/// kFailed where each volume is damaged, kSomeFailed where some are; a series that is refused for
/// its verdict is none of them.
ExitCode ExitOf(const Json& volumes) {
  std::size_t damaged = 0;
  for (const Json& volume : volumes) damaged += volume.value("damaged", false) ? 1 : 0;
  if (damaged == 0) return ExitCode::kDone;
  return damaged == volumes.size() ? ExitCode::kFailed : ExitCode::kSomeFailed;
}

/// Prints what the store of an ingested volume records beyond its levels.
void SayGeometry(Terminal& terminal, const Json& image) {
  terminal.Say(StrCat("orientation   ", TextOf(Member(image, "orientation"))));
  terminal.Say(StrCat("HU            ", RangeText(Member(image, "value_range"))));
  const Json verdict = Member(Member(image, "acquisition"), "verdict");
  if (verdict.is_string()) terminal.Say(StrCat("verdict       ", TextOf(verdict)));
  for (const Json& warning : image.value("warnings", Json::array())) {
    terminal.Say(StrCat("warning       ", TextOf(warning)));
  }
}

class InspectCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"STORE|SLIDE", "", "a store, a slide, a volume's file or a folder of DICOM series",
             &path_, true}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(path_));
    PB_ASSIGN_OR_RETURN(const Json image, Inspect(path));
    if (image.contains("volumes")) {
      for (const Json& volume : image["volumes"]) SayVolume(session.terminal, volume);
      PrintSkipped(session.terminal, SkippedOf(image));
    } else {
      SayImage(session.terminal, image);
      if (image.contains("affine_lps")) SayGeometry(session.terminal, image);
    }
    session.terminal.Result(image);
    return image.contains("volumes") ? ExitOf(image["volumes"]) : ExitCode::kDone;
  }

 private:
  StatusOr<Json> Inspect(const std::string& path) const {
    if (zarr::IsStore(Folders::OfThisUser(), path))
      return zarr::InspectStore(Folders::OfThisUser(), path);
    return RunWorkerOp("inspect", Json::object(), JsonOf(JobManifest{.images = {path}}));
  }

  std::string path_;
};

}  // namespace

std::unique_ptr<Command> MakeInspect() { return std::make_unique<InspectCommand>(); }

}  // namespace patchbay::cli
