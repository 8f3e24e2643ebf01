// patchbay synth slide OUT.svs, synth volume OUT.ome.zarr, synth ct DIR: realistic images made from
// nothing.
#include <charconv>
#include <filesystem>
#include <optional>
#include <vector>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/cluster.h"
#include "runtime/client/paths.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

/// The numbers of "6000x4500", all above 0; empty when it is anything else.
std::vector<std::int64_t> ParseSides(const std::string& text) {
  std::vector<std::int64_t> sides;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    std::int64_t side = 0;
    const auto [after, error] = std::from_chars(at, end, side);
    if (error != std::errc() || side <= 0) return {};
    sides.push_back(side);
    if (after == end) return sides;
    if (*after != 'x') return {};
    at = after + 1;
  }
}

/// "6000x4500".
StatusOr<std::pair<std::int64_t, std::int64_t>> ParseSlideSize(const std::string& text) {
  const std::vector<std::int64_t> sides = ParseSides(text);
  if (sides.size() == 2) return std::make_pair(sides[0], sides[1]);
  return UsageError(StrCat("--size: expected WxH in pixels, such as 6000x4500, not '", text, "'"));
}

class SynthSlideCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    Argument seed{"--seed", "S", "random seed: every seed gives another slide", &seed_};
    seed.min = 0;
    return {{"OUT.svs", "", "the file to write", &path_, true},
            {"--size", "WxH", "pixels of level 0 (default 8192x8192)", &size_},
            seed,
            ForceArgument(force_)};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const auto size, ParseSlideSize(size_));
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(path_));
    PB_RETURN_IF_ERROR(CheckNothingThere("make slide", path, path_, force_));
    const Json payload = {{"width", size.first},
                          {"height", size.second},
                          {"seed", seed_},
                          {"threads", client::UsableCores()}};
    PB_RETURN_IF_ERROR(RunWorkerOp("synth.slide", payload, {{"out", path}}).status());
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(path, error);
    session.terminal.Say(StrCat(path_, ": ", size.first, " x ", size.second, " pixels, ",
                                HumanBytes(error ? 0 : bytes)));
    session.terminal.Result({{"path", path},
                             {"width", size.first},
                             {"height", size.second},
                             {"seed", seed_},
                             {"bytes", error ? 0 : bytes}});
    return ExitCode::kDone;
  }

 private:
  std::string path_;
  std::string size_ = "8192x8192";
  std::int64_t seed_ = 1;
  bool force_ = false;
};

class SynthVolumeCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    Argument seed{"--seed", "S", "another seed, another volume", &seed_};
    seed.min = 0;
    return {{"OUT.ome.zarr", "", "the store to write", &path_, true},
            {"--size", "ZxYxX", "voxels of level 0: slices, rows, columns (default 128x512x512)",
             &size_},
            seed};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    const std::vector<std::int64_t> size = ParseSides(size_);
    if (size.size() != 3) {
      return UsageError(
          StrCat("--size: expected ZxYxX in voxels, such as 128x512x512, not '", size_, "'"));
    }
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(path_));
    const std::string folder = std::filesystem::path(path).parent_path().string();
    PB_RETURN_IF_ERROR(CheckOutsideStores("synth volume", folder, path_));
    const Json payload = {{"size", size}, {"seed", static_cast<std::uint64_t>(seed_)}};
    PB_RETURN_IF_ERROR(RunWorkerOp("synth.volume", payload, {{"out", path}}).status());
    session.terminal.Say(
        StrCat(path_, ": ", size[0], " x ", size[1], " x ", size[2], " voxels of int16"));
    session.terminal.Result({{"path", path}, {"size", size}, {"seed", seed_}});
    return ExitCode::kDone;
  }

 private:
  std::string path_;
  std::string size_ = "128x512x512";
  std::int64_t seed_ = 1;
};

class SynthCtCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    Argument seed{"--seed", "S", "another seed, another phantom", &seed_};
    seed.min = 0;
    return {{"DIR", "", "the folder to make", &path_, true},
            {"--size", "ZxYxX", "slices, rows, columns (default 24x128x128)", &size_},
            seed,
            {"--step", "MM", "from slice to slice (default 2.5)", &step_mm_},
            {"--pixel", "MM", "from pixel to pixel (default 0.78125)", &pixel_mm_},
            {"--fault", "NAME", "what is wrong with it: tilt, missing-slice, ... (default none)",
             &fault_},
            {"--lesions", "FILE.nii", "with tumours (1) and polyps (2), and this mask of them",
             &lesions_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    const std::vector<std::int64_t> size = ParseSides(size_);
    if (size.size() != 3) {
      return UsageError(StrCat("--size: expected ZxYxX, such as 24x128x128, not '", size_, "'"));
    }
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(path_));
    PB_RETURN_IF_ERROR(CheckOutsideStores("synth ct", path, path_));
    Json payload = {{"size", size}, {"seed", static_cast<std::uint64_t>(seed_)}, {"fault", fault_}};
    if (step_mm_) payload["step_mm"] = *step_mm_;
    if (pixel_mm_) payload["pixel_mm"] = *pixel_mm_;
    Json manifest = {{"out", path}};
    if (!lesions_.empty()) {
      PB_ASSIGN_OR_RETURN(const std::string mask, client::AbsolutePath(lesions_));
      if (IsThere(mask)) {
        return absl::AlreadyExistsError(StrCat("synth ct: ", lesions_, ": it exists"));
      }
      manifest["lesions"] = mask;
    }
    const auto made = RunWorkerOp("synth.ct", payload, manifest);
    if (absl::IsInvalidArgument(made.status())) return AsUsageError(made.status());
    PB_RETURN_IF_ERROR(made.status());
    session.terminal.Say(
        StrCat(path_, ": ", DumpJson(made->value("files", Json())), " DICOM files of a phantom"));
    session.terminal.Result({{"path", path},
                             {"size", size},
                             {"seed", seed_},
                             {"fault", fault_},
                             {"files", made->value("files", Json())}});
    return ExitCode::kDone;
  }

 private:
  std::string path_;
  std::string size_ = "24x128x128", fault_ = "none", lesions_;
  std::int64_t seed_ = 1;
  std::optional<double> step_mm_, pixel_mm_;
};

}  // namespace

std::unique_ptr<Command> MakeSynthSlide() { return std::make_unique<SynthSlideCommand>(); }
std::unique_ptr<Command> MakeSynthCt() { return std::make_unique<SynthCtCommand>(); }
std::unique_ptr<Command> MakeSynthVolume() { return std::make_unique<SynthVolumeCommand>(); }

}  // namespace patchbay::cli
