// patchbay labels export STORE --set NAME --out FILE: a label set as a file for other programs; of
// results of `map` a file for each image in a folder, or that of one image.
#include <filesystem>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/labels/labels_job.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/paths.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/label_formats.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/source/file_kind.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

/// The name of the image's folder in results.
std::string ImageOf(const std::string& class_map) {
  return std::filesystem::path(class_map).parent_path().filename().string();
}

class LabelsExportCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return WithOptions(
        {{"STORE|RESULTS", "", "a store with label sets, or results of `map`", &store_, true},
         {"--out", "FILE|DIR", "the file to write; of results a folder", &out_, true},
         {"--stores", "DIR", "folder of the stores of results", &stores_},
         {"--output", "NAME", "the output of results, where several have a class map", &output_},
         {"--source", "SERIES", "the DICOM series, or a folder with it", &source_},
         ForceArgument(force_)},
        options_);
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string out, client::AbsolutePath(out_));
    const bool is_store = !NamesResults(store_);
    if (is_store) PB_RETURN_IF_ERROR(CheckNothingThere("labels export", out, out_, force_));
    PB_RETURN_IF_ERROR(ChooseFormat());
    PB_RETURN_IF_ERROR(AsUsageError(options_.Check()));
    const LabelFormat& format = *FindLabelFormat(options_.to);
    PB_RETURN_IF_ERROR(CheckSource(format));
    if (is_store) {
      if (options_.set.empty()) return UsageError("--set: name the label set of the store");
      if (!output_.empty() || !stores_.empty()) {
        return UsageError("--output and --stores go with a folder of results");
      }
      PB_ASSIGN_OR_RETURN(const std::string store, client::AbsolutePath(store_));
      return ExportTo(session, {.images = {store}, .out = out}, out_);
    }
    if (!options_.set.empty()) return UsageError("--set: results have outputs: --output names one");
    PB_ASSIGN_OR_RETURN(const ResultRows found, LabelRowsOfResults(store_, output_, stores_));
    options_.set = found.output;
    if (found.is_image) return ExportTo(session, {.label_rows = found.rows, .out = out}, out_);
    if (LabelFormatOfFile(out_) != nullptr) {
      return UsageError(StrCat("--out ", out_, ": of results a folder of files is written: name a ",
                               "folder and --to ", format.name, ", or the folder of one image"));
    }
    return ExportEach(session, found, out, format);
  }

 private:
  /// The file of one image. `typed`: as the user named it.
  StatusOr<Json> Export(JobManifest manifest, const std::string& typed) const {
    PB_RETURN_IF_ERROR(CheckNothingThere("labels export", manifest.out, typed, force_));
    if (!source_.empty()) {
      PB_ASSIGN_OR_RETURN(const std::string source, client::AbsolutePath(source_));
      manifest.sources = {source};
    }
    PB_ASSIGN_OR_RETURN(Json result,
                        RunWorkerOp("labels.export", PayloadOf(options_), JsonOf(manifest)));
    result["path"] = manifest.out;
    return result;
  }

  void Say(Session& session, const Json& result, const std::string& typed) const {
    session.terminal.Say(StrCat(typed, ": ", result.value("content", ""), " of ", options_.set,
                                ", ", HumanBytes(result.value("bytes", std::uint64_t{0}))));
  }

  StatusOr<ExitCode> ExportTo(Session& session, JobManifest manifest,
                              const std::string& typed) const {
    PB_ASSIGN_OR_RETURN(const Json result, Export(std::move(manifest), typed));
    Say(session, result, typed);
    session.terminal.Result(result);
    return ExitCode::kDone;
  }

  /// A file for each image, called after its folder of results. An image may fail alone.
  StatusOr<ExitCode> ExportEach(Session& session, const ResultRows& found, const std::string& out,
                                const LabelFormat& format) const {
    PB_RETURN_IF_ERROR(CheckOutsideStores("labels export", out, out_));
    PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), out, 0700));
    Json files = Json::array(), failed = Json::array();
    const auto fail = [&](const std::string& image, std::string_view reason) {
      session.terminal.Note(StrCat(image, ": ", reason));
      failed.push_back({{"image", image}, {"reason", reason}});
    };
    for (const FailedSource& one : found.failed) fail(ImageOf(one.source), TextOf(one.outcome));
    for (const LabelRow& row : found.rows) {
      const std::string image = ImageOf(row.file);
      const std::string name = StrCat(image, format.endings[0]), typed = StrCat(out_, "/", name);
      StatusOr<Json> result = Export({.label_rows = {row}, .out = StrCat(out, "/", name)}, typed);
      if (absl::IsCancelled(result.status())) return result.status();
      if (result.ok()) {
        Say(session, *result, typed);
        files.push_back(*std::move(result));
      } else {
        fail(image, MessageOf(result.status()));
      }
    }
    session.terminal.Result({{"files", files}, {"failed", failed}});
    if (failed.empty()) return ExitCode::kDone;
    return files.empty() ? ExitCode::kFailed : ExitCode::kSomeFailed;
  }

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

  std::string store_, out_, source_, stores_, output_;
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
