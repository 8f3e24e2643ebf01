// Measures one image: its strips, and the merge of their results.
#include <span>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/spectra_image.h"
#include "workers/jobs/spectra/strip.h"

namespace patchbay::workers {
namespace {

/// The frames of the strip that the payload's mask wants.
StatusOr<std::vector<std::uint8_t>> FramesOfMask(const SpectraTask& task, const SpectraGrid& grid) {
  if (task.asked.mask.empty()) return std::vector<std::uint8_t>();
  PB_ASSIGN_OR_RETURN(const std::string bytes, LoadSpectraArray(task.folders, task.asked.mask));
  PB_ASSIGN_OR_RETURN(const ops::TissueMask tissue, DecodeTissueMask(bytes));
  return FramesOnTissue(tissue, grid, task.asked.frames);
}

/// Merges one strip into the earlier ones.
Status MergeStrip(TaskContext& context, const SpectraTask& task, StripResult strip,
                  StripResult& into) {
  if (strip.damaged) {
    const auto place = [](const DamagedTile& t) { return std::pair(t.row, t.column); };
    if (!into.damaged || place(*strip.damaged) < place(*into.damaged)) {
      into.damaged = std::move(strip.damaged);
    }
    return absl::OkStatus();
  }
  into.frames_skipped += strip.frames_skipped;
  into.frames_off_tissue += strip.frames_off_tissue;
  for (std::size_t i = 0; i < strip.sums.size(); ++i) {
    if (task.settings.coefficients) {
      if (strip.coefficients.size() != strip.sums.size()) {
        return Internal("spectra: strip has no coefficients");
      }
      PB_ASSIGN_OR_RETURN(const std::string bytes,
                          LoadSpectraArray(task.folders, strip.coefficients[i]));
      PB_RETURN_IF_ERROR(ops::DecodeCoefficients(bytes, strip.sums[i]));
    }
    PB_RETURN_IF_ERROR(ops::Merge(strip.sums[i], into.sums[i]));
  }
  context.AddProgress();
  return context.CheckCancelled();
}

/// Names the tile by level, row and column, as most sources do already.
Status DamageError(const SpectraTask& task, const DamagedTile& tile) {
  const Status why = StatusOf(tile.why);
  const std::string place = StrCat("level 0 row ", tile.row, " column ", tile.column);
  const bool is_named = MessageOf(why).find(place) != std::string_view::npos;
  return About(is_named ? why : Annotate(why, place), task.folders.job, task.AsSubject());
}

/// All strips in their order (the inputs but the last). Every frame of the image must be accounted
/// for, once.
StatusOr<StripResult> MergeStrips(TaskContext& context, const SpectraTask& task,
                                  const SpectraGrid& grid) {
  const SpectraSettings& settings = task.settings;
  StripResult merged;
  merged.sums.assign(static_cast<std::size_t>(plan::SpectralChannels(settings)),
                     ops::SpectralSums(settings));
  for (const std::string& input : std::span(context.inputs).first(context.inputs.size() - 1)) {
    PB_ASSIGN_OR_RETURN(const Json json, ParseJson(input, "strip result"));
    PB_ASSIGN_OR_RETURN(StripResult strip, StripResultFromJson(json, settings));
    PB_RETURN_IF_ERROR(MergeStrip(context, task, std::move(strip), merged));
  }
  if (merged.damaged) return DamageError(task, *merged.damaged);
  const std::uint64_t frames =
      merged.sums.front().frames + merged.frames_skipped + merged.frames_off_tissue;
  if (frames != static_cast<std::uint64_t>(grid.Frames())) {
    return task.Error(absl::StatusCode::kInternal,
                      StrCat(frames, " frames of ", grid.Frames(), " are accounted for"));
  }
  return merged;
}

Status CheckAnyFrame(const SpectraTask& task, const StripResult& merged) {
  if (merged.sums.front().frames > 0) return absl::OkStatus();
  return task.Error(
      absl::StatusCode::kFailedPrecondition,
      merged.frames_skipped > 0 ? "every frame lies on a damaged tile" : "no frame lies on tissue");
}

}  // namespace

StatusOr<TaskOutput> RunSpectraStrip(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const SpectraTask task, OpenSpectraTask(context));
  PB_ASSIGN_OR_RETURN(const SpectraImage image, OpenSpectraImage(task));
  context.AddProgress();
  StripRequest request{*image.source, task.settings, task.asked.frames, {}};
  PB_ASSIGN_OR_RETURN(request.wanted, FramesOfMask(task, image.grid));
  PB_ASSIGN_OR_RETURN(StripResult result, MeasureStrip(context, request));
  PB_RETURN_IF_ERROR(CheckSpectraStamp(task));
  if (task.settings.coefficients && !result.damaged) {
    for (const ops::SpectralSums& sums : result.sums) {
      PB_ASSIGN_OR_RETURN(result.coefficients.emplace_back(),
                          SaveSpectraArray(task.folders, ops::EncodeCoefficients(sums)));
    }
  }
  if (result.damaged) {
    Outcome& why = result.damaged->why;
    why = OutcomeOf(context.WithSubjects(StatusOf(why)));
  }
  TaskOutput output;
  output.result = DumpJson(ToJson(result));
  output.progress_bytes = RawBytesOf(image.grid, request.frames, image.source->layout().channels);
  return output;
}

StatusOr<TaskOutput> RunSpectraName(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const SpectraTask task, OpenSpectraTask(context));
  PB_ASSIGN_OR_RETURN(const SlideName name, NameOfSlide(context, task));
  PB_RETURN_IF_ERROR(CheckSpectraStamp(task));
  TaskOutput output;
  output.result = DumpJson(JsonOf(name));
  return output;
}

StatusOr<TaskOutput> RunSpectraSlide(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const SpectraTask task, OpenSpectraTask(context));
  if (context.inputs.empty()) return Internal("spectra: a slide without its name");
  SlideSpectra slide;
  slide.stamp = task.asked.stamp;
  PB_ASSIGN_OR_RETURN(const SpectraImage image, OpenSpectraImage(task));
  PB_ASSIGN_OR_RETURN(StripResult merged, MergeStrips(context, task, image.grid));
  PB_RETURN_IF_ERROR(CheckAnyFrame(task, merged));
  PB_ASSIGN_OR_RETURN(const Json named, ParseJson(context.inputs.back(), "name result"));
  PB_ASSIGN_OR_RETURN(const SlideName name, FromJson<SlideName>(named, "name result"));
  PB_RETURN_IF_ERROR(CheckSpectraStamp(task));
  slide.digest = name.digest;
  slide.id = name.id;
  slide.origin = name.origin;
  slide.height = image.grid.height;
  slide.width = image.grid.width;
  slide.channels = image.source->layout().channels;
  slide.mpp = MppOf(image.source->layout());
  slide.frames_skipped = merged.frames_skipped;
  slide.frames_off_tissue = merged.frames_off_tissue;
  slide.sums = std::move(merged.sums);
  if (task.settings.coefficients) {
    for (const ops::SpectralSums& sums : slide.sums) {
      PB_ASSIGN_OR_RETURN(slide.coefficients.emplace_back(),
                          SaveSpectraArray(task.folders, ops::EncodeCoefficients(sums)));
    }
  }
  PB_RETURN_IF_ERROR(SaveSlideSpectra(task, slide));
  TaskOutput output;
  output.result = DumpJson({{"slide", task.slide}, {"frames", slide.sums.front().frames}});
  return output;
}

}  // namespace patchbay::workers
