// patchbay convert STORE... --to FORMAT --out DIR: stores of another codec, slides, planar stores.
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/slide_job.h"
#include "runtime/cli/stores/find_stores.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/planar_files.h"
#include "runtime/model/jobs/convert_options.h"

namespace patchbay::cli {
namespace {

constexpr std::uint64_t kMaxFilesUnforced = 200'000;

/// Files that the stores become where each plane of a chunk is one.
StatusOr<std::uint64_t> FilesOf(const std::vector<std::string>& sources) {
  std::uint64_t files = 0;
  FilesByKind ignored;
  for (const std::string& source : sources) {
    PB_ASSIGN_OR_RETURN(const auto stores, StoresIn(source, ignored));
    for (const std::string& store : stores) {
      // The job names a store that cannot be opened.
      files += zarr::PlanarFilesOf(Folders::OfThisUser(), store).value_or(0);
    }
  }
  return files;
}

class ConvertCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  Status CheckFiles(Session& session) const;

  std::vector<std::string> sources_;
  std::string out_;
  ConvertOptions options_;
  bool force_ = false;
  bool detach_ = false;
  OwnClusterArguments own_;
};

std::vector<Argument> ConvertCommand::Arguments() {
  std::vector<Argument> arguments =
      WithOptions({{"STORE", "", "stores, or folders of them", &sources_, true},
                   {"--out", "DIR", "the folder for what is made", &out_, true}},
                  options_);
  arguments.push_back({"--force", "", "write more than 200,000 files", &force_});
  arguments.push_back({"--detach", "", "submit, print the job's number and return", &detach_});
  own_.AddTo(arguments);
  return arguments;
}

/// Says how many files will be written, where they are many.
Status ConvertCommand::CheckFiles(Session& session) const {
  if (options_.MakesStore() || !options_.MakesFolder()) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const std::uint64_t files, FilesOf(sources_));
  if (files <= kMaxFilesUnforced || force_) {
    session.terminal.Note(StrCat("up to ", files, " files will be in ", out_));
    return absl::OkStatus();
  }
  return InvalidArgument("convert: --to ", options_.to, " would write up to ", files,
                         " files, more than ", kMaxFilesUnforced, "; give --force to write them");
}

StatusOr<ExitCode> ConvertCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_RETURN_IF_ERROR(CheckFiles(session));
  PB_ASSIGN_OR_RETURN(SlideJobRequest request, RequestSlideJob("convert", sources_, out_));
  request.payload = PayloadOf(options_);
  return RunStagedJob(session, {std::move(request), &own_, detach_});
}

}  // namespace

const char kConvertNote[] =
    "Stores keep pixels and label sets; files hold kept tiles byte for byte, other pixels\n"
    "without loss unless --quality says otherwise. configs/stores.md says what files lack.\n"
    "Exit code 3: some stores failed, see DIR/failed.csv. After a kill, run the command again.\n";

std::unique_ptr<Command> MakeConvert() { return std::make_unique<ConvertCommand>(); }

}  // namespace patchbay::cli
