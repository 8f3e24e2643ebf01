#include "workers/jobs/plan/image_values.h"

#include <array>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/value_histogram.h"
#include "runtime/model/plan/value_statistics.h"
#include "runtime/os/file.h"
#include "workers/access/stamps.h"

namespace patchbay::workers {
namespace {

using plan::ValuesNeeded;

Status Missing(std::string_view what) {
  return InvalidArgument("no ", what,
                         " (a store made by an earlier version, or no store): `patchbay ingest` "
                         "the volume again, into another folder");
}

/// Between two percentiles, or about the mean.
StatusOr<NormalisingNumbers> Between(double lower, double upper) {
  if (lower < upper) return NormalisingNumbers{lower, upper - lower};
  return InvalidArgument("range: both percentiles are ", lower, ": leave it out with `where`");
}

StatusOr<NormalisingNumbers> OfCounts(plan::HuHistogram counts, const plan::VolumeNeeds& needs) {
  const ValuesNeeded& wanted = *needs.values;
  if (wanted.over == plan::kOverNonzero) {
    std::erase_if(
        counts, [&needs](const auto& one) { return plan::Windowed(one.first, needs.window) == 0; });
  }
  const std::array<double, 2> percentiles = wanted.percentiles.value_or(std::array<double, 2>{});
  const auto found = plan::StatisticsOf(counts, needs.window, percentiles);
  if (!found) {
    return InvalidArgument("no ", wanted.over,
                           " was found in the volume: leave it out with `where`");
  }
  if (wanted.percentiles) return Between(found->lower, found->upper);
  return NormalisingNumbers{found->mean, found->std};
}

StatusOr<NormalisingNumbers> OfMoments(const plan::Moments& moments,
                                       const plan::VolumeNeeds& needs) {
  if (needs.window) {
    return InvalidArgument(
        "it is of float32, whose values are counted without a window: leave "
        "`window` out, or use `ct_normalize` or `normalize`");
  }
  if (moments.voxels != 0) return NormalisingNumbers{moments.mean, moments.std};
  return InvalidArgument("no ", needs.values->over,
                         " was found in the volume: leave it out with `where`");
}

StatusOr<NormalisingNumbers> OfHistogram(const Json& recorded, const plan::VolumeNeeds& needs) {
  PB_ASSIGN_OR_RETURN(const auto histogram, plan::ValueHistogram::FromJson(recorded));
  return OfCounts(histogram.Counts(), needs);
}

/// A member of the record of a channel; null where there is none.
Json RecordedMember(const CountedChannel& channel, const char* name) {
  return channel.recorded.is_object() ? channel.recorded.value(name, Json()) : Json();
}

StatusOr<NormalisingNumbers> OfImage(const CountedChannel& channel,
                                     const plan::VolumeNeeds& needs) {
  const Json counted = RecordedMember(channel, "value_histogram");
  if (!counted.is_null()) return OfHistogram(counted, needs);
  const Json recorded = RecordedMember(channel, "value_statistics");
  if (recorded.is_null()) return Missing("counts of its values");
  PB_ASSIGN_OR_RETURN(const auto found,
                      FromJson<plan::FloatStatistics>(recorded, "value_statistics"));
  const ValuesNeeded& wanted = *needs.values;
  PB_ASSIGN_OR_RETURN(
      const NormalisingNumbers numbers,
      OfMoments(wanted.over == plan::kOverNonzero ? found.nonzero : found.image, needs));
  if (!wanted.percentiles) return numbers;
  PB_ASSIGN_OR_RETURN(const double lower, found.Percentile((*wanted.percentiles)[0]));
  PB_ASSIGN_OR_RETURN(const double upper, found.Percentile((*wanted.percentiles)[1]));
  return Between(lower, upper);
}

/// Over the voxels of all classes of a label set but background.
StatusOr<NormalisingNumbers> OfMask(const Folders& allowed, const CountedChannel& channel,
                                    const plan::VolumeNeeds& needs) {
  const std::string& name = needs.values->mask;
  PB_ASSIGN_OR_RETURN(const zarr::OpenedLabelSet set,
                      zarr::OpenLabelSet(allowed, channel.path, name));
  if (channel.dtype == DType::kFloat32) {
    plan::Moments sum;
    Json classes = set.attributes.value("value_statistics", Json());
    if (classes.is_array() && channel.index < classes.size()) {
      classes = Json(classes[channel.index]);
    }
    if (!classes.is_object()) {
      return InvalidArgument("the label set '", name,
                             "' has no statistics of float32: import it again");
    }
    for (const auto& [one, recorded] : classes.items()) {
      PB_ASSIGN_OR_RETURN(const auto moments,
                          FromJson<plan::Moments>(recorded, "value_statistics"));
      if (one != plan::kBackgroundClass) sum.Merge(moments);
    }
    return OfMoments(sum, needs);
  }
  PB_ASSIGN_OR_RETURN(const auto histograms, ClassHistogramsOf(allowed, set, name, channel.index));
  plan::HuHistogram sum;
  for (const plan::ClassHistogram& one : histograms.classes) {
    if (one.name == plan::kBackgroundClass) continue;
    for (const auto& [value, count] : one.counts) sum[value] += count;
  }
  return OfCounts(std::move(sum), needs);
}

}  // namespace

StatusOr<NormalisingNumbers> NumbersOf(const Folders& allowed, const CountedChannel& channel,
                                       const plan::VolumeNeeds& needs) {
  const ValuesNeeded& wanted = *needs.values;
  const bool is_one_of_several = !channel.name.empty();
  const auto found = [&]() -> StatusOr<NormalisingNumbers> {
    if (wanted.over == plan::kOverMask) return OfMask(allowed, channel, needs);
    if (wanted.over != plan::kOverBody) return OfImage(channel, needs);
    const Json recorded = RecordedMember(channel, "body_histogram");
    return recorded.is_null() ? Missing("body histogram") : OfHistogram(recorded, needs);
  }();
  if (found.ok()) return found;
  return Annotate(found.status(),
                  is_one_of_several ? StrCat(wanted.op, ": ", channel.name) : wanted.op);
}

StatusOr<plan::ClassHistograms> ClassHistogramsOf(const Folders& allowed,
                                                  const zarr::OpenedLabelSet& set,
                                                  const std::string& name, std::size_t channel) {
  const std::string name_of_file = plan::ClassHistogramsFileOf(channel);
  const std::string file = StrCat(set.path, "/", name_of_file);
  const StatusOr<std::string> text = ReadFile(allowed, file, plan::kMaxClassHistogramsBytes);
  if (absl::IsNotFound(text.status())) {
    return InvalidArgument("the label set '", name,
                           "' has no histograms of values: it is of a slide, or of an earlier "
                           "version: import it again");
  }
  if (!text.ok()) return text.status();
  const Json files = set.attributes.value("files", Json::object());
  if (files.value(name_of_file, "") == Sha256Of(*text).Hex()) {
    return plan::DecodeClassHistograms(*text);
  }
  return ErrorAbout(absl::StatusCode::kDataLoss, "read histograms", file,
                    "not the file that the set names (`patchbay verify` lists all faults)");
}

Status CheckHu(const std::optional<Modality>& modality, std::string_view asks,
               std::string_view of) {
  if (modality && modality->IsHu()) return absl::OkStatus();
  return WithAdvice(InvalidArgument(asks, ", and ", of, " is ",
                                    modality ? modality->ToString() : std::string("not known")),
                    "if it is CT, the column `modality` of a table says so, or `patchbay ingest "
                    "--modality CT` into another folder");
}

Status CheckAllHu(const std::optional<Modality>& modality,
                  const std::vector<results::ChannelFacts>& channels, std::string_view asks) {
  if (channels.empty()) return CheckHu(modality, asks);
  for (const results::ChannelFacts& channel : channels) {
    PB_RETURN_IF_ERROR(CheckHu(channel.modality, asks,
                               StrCat("the modality of the channel '", channel.name, "'")));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
