#include "runtime/model/jobs/ingest_settings.h"

#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/source/modality.h"
#include "runtime/model/source/mpp_range.h"
#include "runtime/model/source/repair.h"

namespace patchbay {
namespace {

std::vector<Option> PixelOptions(IngestSettings& settings) {
  return {
      {.name = "--chunk",
       .value = "PX",
       .help = "side of a chunk; of `keep`: the slide's tile",
       .target = &settings.chunk,
       .min = 64,
       .max = 4096,
       .unit = "px",
       .always = true},
      {.name = "--shard",
       .value = "PX",
       .help = "side of a file, a multiple of --chunk",
       .target = &settings.shard,
       .min = 64,
       .max = 32768,
       .unit = "px",
       .always = true},
      {.name = "--codec",
       .help = "smaller, faster, the slide's own tiles, or as measured",
       .target = &settings.codec,
       .choices = {"zstd", "lz4", "keep", kAutoCodec},
       .always = true},
      {.name = "--epochs",
       .value = "N",
       .help = "planned passes, for `--codec auto`",
       .target = &settings.epochs,
       .min = 1,
       .max = 1e6,
       .otherwise = StrCat(kUsualEpochs)},
      {.name = "--codec-level",
       .value = "N",
       .help = "higher is smaller and slower",
       .target = &settings.codec_level,
       .min = 1,
       .max = 9,
       .always = true},
      {.name = "--mpp",
       .value = "M",
       .help = "um per pixel of the finest level",
       .target = &settings.mpp,
       .min = 1e-3,
       .max = 999,
       .unit = "um",
       .otherwise = "the slide's"},
      {.name = "--assume-mpp",
       .value = "M",
       .help = "um per pixel of slides that do not state it, recorded",
       .target = &settings.assume_mpp,
       .min = kSmallestMpp,
       .max = kLargestMpp,
       .unit = "um",
       .hint = "the unit is um, not nanometres: 20x is about 0.5"},
  };
}

std::vector<Option> VolumeOptions(IngestSettings& settings) {
  return {
      {.name = "--volume-chunk",
       .value = "N",
       .help = "side of a volume's chunk",
       .target = &settings.volume_chunk,
       .numbers = {32, 48, 64, 96, 128},
       .unit = "voxels"},
      {.name = "--geometry",
       .help = "treatment of uneven or tilted slices",
       .target = &settings.geometry,
       .choices = {"refuse", "resample", "accept"}},
      {.name = "--repair",
       .value = "RULE[,RULE]",
       .help = "rules by which refused series may be taken",
       .target = &settings.repair,
       .otherwise = "none"},
      {.name = "--orientation",
       .help = "axes: S, P, L (canonical) or the file's",
       .target = &settings.orientation,
       .choices = {"canonical", "source"}},
      {.name = "--spacing",
       .value = "Z,Y,X",
       .help = "resample volumes to this spacing in mm",
       .target = &settings.spacing,
       .min = 0.1,
       .max = 100,
       .unit = "mm",
       .otherwise = "keep"},
      {.name = "--spacing-order",
       .value = "N",
       .help = "nearest, linear or cubic",
       .target = &settings.spacing_order,
       .numbers = {0, 1, 3}},
      {.name = "--anisotropic",
       .help = "a coarse axis by nearest, as nnU-Net",
       .target = &settings.anisotropic,
       .choices = {"together", "separate_z"}},
      {.name = "--modality",
       .value = "M",
       .help = "CT, MR, PT or OT[:UNIT], unless a table says it",
       .target = &settings.modality,
       .choices = ModalityNames(),
       .otherwise = "the source's"},
      {.name = "--nan",
       .value = "VALUE",
       .help = "replaces NaN and infinity",
       .target = &settings.nan,
       .min = -1e6,
       .max = 1e6,
       .otherwise = "refuse them"},
  };
}

std::vector<Option> OtherOptions(IngestSettings& settings) {
  return {
      {.name = "--tissue",
       .help = "find the tissue of slides too, as `labels tissue` does",
       .target = &settings.tissue,
       .choices = TissueProfiles()},
      {.name = "--no-statistics",
       .help = "keep without stain fit, so that nothing is decoded",
       .target = &settings.no_statistics},
      {.name = "--self-contained",
       .help = "keep with the JPEG tables in each tile",
       .target = &settings.self_contained},
      {.name = "--keep-names",
       .help = "name stores after their files, not by pseudonym",
       .target = &settings.keep_names,
       .always = true},
  };
}

}  // namespace

std::vector<Option> IngestSettings::Options() {
  std::vector<Option> options;
  for (const auto part : {PixelOptions, VolumeOptions, OtherOptions}) {
    for (Option& option : part(*this)) options.push_back(std::move(option));
  }
  return options;
}

Status IngestSettings::Check() const {
  PB_RETURN_IF_ERROR(Annotate(ParseRepairs(repair).status(), "--repair"));
  if (epochs && codec != kAutoCodec) {
    return InvalidArgument("--epochs goes with --codec auto, not ", codec);
  }
  if (no_statistics && !KeepsTiles() && codec != kAutoCodec) {
    return InvalidArgument("--no-statistics goes with --codec keep: ", codec,
                           " decodes every pixel anyway");
  }
  if (self_contained && !KeepsTiles() && codec != kAutoCodec) {
    return InvalidArgument("--self-contained goes with --codec keep: ", codec,
                           " has no tiles of the slide");
  }
  if (KeepsTiles() || (shard >= chunk && shard % chunk == 0)) return absl::OkStatus();
  return InvalidArgument("--shard ", shard, " is not a multiple of --chunk ", chunk);
}

Json ToJson(const IngestSettings& settings) {
  Json json = PayloadOf(settings);
  // Without a spacing these have no meaning; with one the order is always written.
  json.erase("spacing_order");
  if (!settings.spacing) json.erase("anisotropic");
  if (settings.spacing) json["spacing_order"] = settings.spacing_order;
  return json;
}

std::string IngestSettings::Canonical() const {
  Json json = ToJson(*this);
  json.erase("keep_names");
  json.erase("tissue");
  json.erase("modality");
  json.erase("repair");
  json.update(JsonOf(choice));
  return DumpJson(json);
}

}  // namespace patchbay
