// patchbay labels export STORE --set NAME --out FILE: a label set as a file for other programs.
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/paths.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/label_formats.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {
namespace {

class LabelsExportCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return WithOptions({{"STORE", "", "a store with label sets", &store_, true},
                        {"--out", "FILE", "the file to write", &out_, true},
                        {"--source", "SERIES", "the DICOM series, or a folder with it", &source_},
                        ForceArgument(force_)},
                       options_);
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string store, client::AbsolutePath(store_));
    PB_ASSIGN_OR_RETURN(const std::string out, client::AbsolutePath(out_));
    PB_RETURN_IF_ERROR(CheckNothingThere("labels export", out, out_, force_));
    PB_RETURN_IF_ERROR(ChooseFormat());
    PB_RETURN_IF_ERROR(AsUsageError(options_.Check()));
    PB_RETURN_IF_ERROR(CheckSource(*FindLabelFormat(options_.to)));
    JobManifest manifest{.images = {store}, .out = out};
    if (!source_.empty()) {
      PB_ASSIGN_OR_RETURN(const std::string source, client::AbsolutePath(source_));
      manifest.sources = {source};
    }
    PB_ASSIGN_OR_RETURN(Json result,
                        RunWorkerOp("labels.export", PayloadOf(options_), JsonOf(manifest)));
    session.terminal.Say(StrCat(out_, ": ", result.value("content", ""), " of ", options_.set, ", ",
                                HumanBytes(result.value("bytes", std::uint64_t{0}))));
    result["path"] = out;
    session.terminal.Result(result);
    return ExitCode::kDone;
  }

 private:
  /// The format by the ending of the file's name, unless --to names it; the name of another kind of
  /// file is refused.
  Status ChooseFormat() {
    const LabelFormat* by_name = LabelFormatOfFile(out_);
    if (options_.to.empty() && by_name != nullptr) options_.to = by_name->name;
    if (options_.to.empty()) {
      std::string known;
      for (const LabelFormat& one : LabelFormats()) {
        known += StrCat(known.empty() ? "" : "; ", EndingsOf(one), " for ", one.name);
      }
      return UsageError(StrCat("--out ", out_, ": its ending is that of no format: end it in ",
                               known, "; or give --to"));
    }
    const LabelFormat* format = FindLabelFormat(options_.to);
    const bool is_neutral = by_name == nullptr && KindOfFile(out_) == "other";
    if (format == nullptr || by_name == format || is_neutral) return absl::OkStatus();
    return UsageError(StrCat("--out ", out_, ": the name says ",
                             by_name != nullptr ? std::string(by_name->name) : KindOfFile(out_),
                             ", and ", format->name, " would be written: end it in ",
                             EndingsOf(*format)));
  }

  Status CheckSource(const LabelFormat& format) const {
    if (format.needs_source == !source_.empty()) return absl::OkStatus();
    return UsageError(format.needs_source
                          ? StrCat("--source: ", format.name,
                                   " needs the DICOM series that the store was made from")
                          : StrCat("--source: the format is ", format.name, ", which needs none"));
  }

  std::string store_, out_, source_;
  LabelsExportOptions options_;
  bool force_ = false;
};

}  // namespace

std::string LabelsExportNote() {
  return StrCat(
      "The ending of FILE says the format; --to says it where the ending says none:\n",
      ListLabelFormats(),
      "Pixels that nobody drew have no outline: background where the class table is exhaustive,\n"
      "else those to be ignored. Importing the file again gives the same pixels, unless --smooth,\n"
      "--min-area or --level changed them. See configs/export.md.\n");
}

std::unique_ptr<Command> MakeLabelsExport() { return std::make_unique<LabelsExportCommand>(); }

}  // namespace patchbay::cli
