// patchbay labels export STORE --set NAME --out FILE: a label set back to outlines or a mask.
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/paths.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {
namespace {

class LabelsExportCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return WithOptions({{"STORE", "", "a store with label sets", &store_, true},
                        {"--out", "FILE", "the file to write", &out_, true},
                        ForceArgument(force_)},
                       options_);
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string store, client::AbsolutePath(store_));
    PB_ASSIGN_OR_RETURN(const std::string out, client::AbsolutePath(out_));
    PB_RETURN_IF_ERROR(CheckNothingThere("labels export", out, out_, force_));
    PB_RETURN_IF_ERROR(CheckEnding());
    PB_ASSIGN_OR_RETURN(Json result, RunWorkerOp("labels.export", PayloadOf(options_),
                                                 {{"images", {store}}, {"out", out}}));
    const std::string what = options_.to == "tiff"
                                 ? std::string("mask")
                                 : Counted(result.value("outlines", std::uint64_t{0}), "outline");
    session.terminal.Say(StrCat(out_, ": ", what, " of ", options_.set, ", ",
                                HumanBytes(result.value("bytes", std::uint64_t{0}))));
    result["path"] = out;
    session.terminal.Result(result);
    return ExitCode::kDone;
  }

 private:
  /// Refuses a name with the extension of another format.
  Status CheckEnding() const {
    const std::string said = KindOfFile(out_);
    const bool is_tiff = said == "tif" || said == "tiff" || said == "btf";
    const bool is_geojson = said == "geojson" || said == "json";
    const bool writes_tiff = options_.to == "tiff";
    if (said == "other" || (writes_tiff ? is_tiff : is_geojson)) return absl::OkStatus();
    const std::string wanted = is_tiff ? "--to tiff" : is_geojson ? "--to geojson" : "";
    return UsageError(StrCat("--out ", out_, ": the name says .", said, ", and ",
                             writes_tiff ? "a TIFF mask" : "GeoJSON", " would be written: ",
                             wanted.empty() ? "" : StrCat("give ", wanted, ", or "),
                             "end the name in ", writes_tiff ? ".tif" : ".geojson"));
  }

  std::string store_, out_;
  LabelsExportOptions options_;
  bool force_ = false;
};

}  // namespace

const char kLabelsExportNote[] =
    "Coordinates are pixels of the slide's finest level, from the corner of its scanned area "
    "(that\n"
    "of the slide, where all of it was scanned) or with --origin slide from the slide's. Lines "
    "run\n"
    "midway between pixels: no further than half a pixel from those that were imported, and\n"
    "importing them again gives the same pixels. A mask is a tiled TIFF of the values of the set,\n"
    "255 = ignored.\n";

std::unique_ptr<Command> MakeLabelsExport() { return std::make_unique<LabelsExportCommand>(); }

}  // namespace patchbay::cli
