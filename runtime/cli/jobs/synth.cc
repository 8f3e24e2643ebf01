// patchbay synth slide OUT.svs, synth volume OUT.ome.zarr, synth ct DIR: realistic images made from
// nothing.
#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/paths.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/local_job_options.h"

namespace patchbay::cli {
namespace {

Json SizeOf(const Extent& size) { return {size.z, size.y, size.x}; }

class SynthSlideCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return WithOptions({{"OUT.svs", "", "the file to write", &path_, true}, ForceArgument(force_)},
                       options_);
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(path_));
    PB_RETURN_IF_ERROR(CheckNothingThere("make slide", path, path_, force_));
    PB_RETURN_IF_ERROR(
        RunWorkerOp("synth.slide", PayloadOf(options_), JsonOf(JobManifest{.out = path})).status());
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(path, error);
    session.terminal.Say(StrCat(path_, ": ", options_.width, " x ", options_.height, " pixels, ",
                                HumanBytes(error ? 0 : bytes)));
    session.terminal.Result({{"path", path},
                             {"width", options_.width},
                             {"height", options_.height},
                             {"seed", options_.seed},
                             {"bytes", error ? 0 : bytes}});
    return ExitCode::kDone;
  }

 private:
  std::string path_;
  SynthSlideOptions options_;
  bool force_ = false;
};

class SynthVolumeCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return WithOptions({{"OUT.ome.zarr", "", "the store to write", &path_, true}}, options_);
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_RETURN_IF_ERROR(AsUsageError(options_.Check()));
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(path_));
    const std::string folder = std::filesystem::path(path).parent_path().string();
    PB_RETURN_IF_ERROR(CheckOutsideStores("synth volume", folder, path_));
    PB_RETURN_IF_ERROR(
        RunWorkerOp("synth.volume", PayloadOf(options_), JsonOf(JobManifest{.out = path}))
            .status());
    const Extent& size = options_.size;
    session.terminal.Say(
        StrCat(path_, ": ", size.z, " x ", size.y, " x ", size.x, " voxels of int16"));
    session.terminal.Result({{"path", path}, {"size", SizeOf(size)}, {"seed", options_.seed}});
    return ExitCode::kDone;
  }

 private:
  std::string path_;
  SynthVolumeOptions options_;
};

class SynthCtCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return WithOptions({{"DIR", "", "the folder to make", &path_, true},
                        {"--lesions", "FILE.nii",
                         "add tumours and polyps, and write their mask here", &options_.lesions}},
                       options_);
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_RETURN_IF_ERROR(AsUsageError(options_.Check()));
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(path_));
    PB_RETURN_IF_ERROR(CheckOutsideStores("synth ct", path, path_));
    JobManifest manifest{.out = path};
    if (!options_.lesions.empty()) {
      PB_ASSIGN_OR_RETURN(manifest.lesions, client::AbsolutePath(options_.lesions));
      if (IsThere(manifest.lesions)) {
        return AlreadyExists("synth ct: ", options_.lesions, ": it exists");
      }
    }
    const auto made = RunWorkerOp("synth.ct", PayloadOf(options_), JsonOf(manifest));
    if (absl::IsInvalidArgument(made.status())) return AsUsageError(made.status());
    PB_RETURN_IF_ERROR(made.status());
    session.terminal.Say(
        StrCat(path_, ": ", DumpJson(made->value("files", Json())), " DICOM files of a phantom"));
    session.terminal.Result({{"path", path},
                             {"size", SizeOf(options_.size)},
                             {"seed", options_.seed},
                             {"fault", options_.fault},
                             {"files", made->value("files", Json())}});
    return ExitCode::kDone;
  }

 private:
  std::string path_;
  SynthCtOptions options_;
};

}  // namespace

std::unique_ptr<Command> MakeSynthSlide() { return std::make_unique<SynthSlideCommand>(); }
std::unique_ptr<Command> MakeSynthCt() { return std::make_unique<SynthCtCommand>(); }
std::unique_ptr<Command> MakeSynthVolume() { return std::make_unique<SynthVolumeCommand>(); }

}  // namespace patchbay::cli
