#include "runtime/model/plan/run_config.h"

#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "runtime/core/channels.h"
#include "runtime/core/names.h"
#include "runtime/core/port_range.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/own_functions.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/plan/plausibility.h"
#include "runtime/model/plan/run_config_keys.h"
#include "runtime/model/source/channel_names.h"

namespace patchbay::plan {
namespace {

using config::Key;
using config::KeyType;

constexpr std::uint32_t kDefaultGlobalBatch = 32;

constexpr auto kOrders = NamesInOrder<PatchOrder>("shuffled", "sequential");
constexpr auto kLayouts = NamesInOrder<PatchLayout>("nchw", "nhwc");
constexpr auto kOnBadImage = NamesInOrder<OnBadImage>("fail", "skip");
constexpr auto kRoles = NamesInOrder<SplitRole>("train", "evaluate");
/// Splits that need not state their role.
constexpr std::pair<std::string_view, SplitRole> kUsualSplits[] = {
    {"train", SplitRole::kTrain},    {"val", SplitRole::kEvaluate},
    {"valid", SplitRole::kEvaluate}, {"validation", SplitRole::kEvaluate},
    {"test", SplitRole::kEvaluate},  {"tune", SplitRole::kEvaluate}};

/// `name` was validated against Choices(names), so there is a value.
template <typename Value, std::size_t N>
Value ValueIn(const Names<Value, N>& names, const Json& name) {
  return *names.Find(name.get_ref<const std::string&>());
}

template <typename Value, std::size_t N>
std::vector<std::string> Choices(const Names<Value, N>& names) {
  return {names.list.begin(), names.list.end()};
}

template <typename Value, std::size_t N>
std::vector<std::string> Choices(const std::array<Value, N>& values) {
  std::vector<std::string> names;
  for (const Value value : values) names.emplace_back(NameOf(value));
  return names;
}

Key OnBadImageKey() {
  return {.name = "on_bad_image",
          .type = KeyType::kChoice,
          .fallback = "fail",
          .choices = Choices(kOnBadImage),
          .help =
              "a damaged or unreadable image ends the run, or is left out and "
              "reported"};
}

Status CheckMpp(const Json& patch) {
  if (patch["mpp"].empty()) return absl::OkStatus();
  if (patch["level"] != 0) return InvalidArgument("mpp and level exclude each other");
  if (patch["size"].size() != 2) return InvalidArgument("mpp is for 2-D images: a size of [y, x]");
  return absl::OkStatus();
}

Status CheckSpacing(const Json& patch) {
  if (!patch.contains("spacing")) return CheckTogether(patch["resample"]);
  if (!patch["mpp"].empty()) return InvalidArgument("mpp and spacing exclude each other");
  if (patch["level"] != 0) return InvalidArgument("spacing and level exclude each other");
  if (patch["size"].size() == 3) return absl::OkStatus();
  return InvalidArgument("spacing is for volumes: a size of [z, y, x]");
}

Status CheckChannels(const Json& channels) {
  std::set<std::string> names;
  for (const Json& channel : channels) {
    const auto& name = channel.get_ref<const std::string&>();
    if (name.empty() || name.size() > kMaxChannelNameBytes) {
      return InvalidArgument("a name of ", name.size(), " bytes: not in 1..", kMaxChannelNameBytes);
    }
    if (!names.insert(name).second) return InvalidArgument("'", name, "' is there twice");
  }
  return absl::OkStatus();
}

Status CheckPatch(const Json& patch) {
  PB_RETURN_IF_ERROR(CheckMpp(patch));
  PB_RETURN_IF_ERROR(CheckSpacing(patch));
  std::int64_t room = kMaxPatchPixels;
  for (const Json& side : patch["size"]) room /= side.get<std::int64_t>();
  if (room > 0) return absl::OkStatus();
  return InvalidArgument("size: a patch of more than ", kMaxPatchPixels, " pixels");
}

/// True or false, and false when the file is silent.
Key OffKey(std::string name, std::string help) {
  return {
      .name = std::move(name), .type = KeyType::kBool, .fallback = false, .help = std::move(help)};
}

Key ChannelsKey() {
  return {.name = "channels",
          .type = KeyType::kStringList,
          .fallback = Json::array(),
          .max_items = kMaxChannels,
          .help =
              "names of the channels that are read, in the order of the batch; if omitted: "
              "all, as they lie in the images",
          .check = CheckChannels};
}

Key FillKey() {
  return {.name = "fill",
          .type = KeyType::kFloat,
          .help =
              "value of every channel outside the image, before any op; if omitted: 255, of "
              "CT -1024, of unsigned volumes 0, of others it must be stated"};
}

Key PatchKeys() {
  return {
      .name = "patch",
      .type = KeyType::kMap,
      .help = "size and place of one patch",
      .members = {{.name = "size",
                   .type = KeyType::kIntList,
                   .required = true,
                   .unit = "px",
                   .min = 1,
                   .max = kMaxPatchSide,
                   .min_items = 2,
                   .max_items = 3,
                   .help = "the patch as the trainer receives it: [y, x], or [z, y, x] of a "
                           "volume"},
                  {.name = "level",
                   .type = KeyType::kInt,
                   .fallback = 0,
                   .min = 0,
                   .max = 63,
                   .help = "pyramid level the patches are cut from, 0 = finest"},
                  {.name = "mpp",
                   .type = KeyType::kFloatList,
                   .fallback = Json::array(),
                   .unit = "um/px",
                   .min = 0.001,
                   .max = 1'000'000,
                   .max_items = kMaxMpps,
                   .help = "instead of a level: the resolution of `image`, and of context "
                           "patches of the same centre, `image_1` and so on"},
                  {.name = "mpp_tolerance",
                   .type = KeyType::kFloat,
                   .fallback = RunConfig{}.mpp_tolerance,
                   .min = 0,
                   .max = 0.5,
                   .help = "relative difference up to which a level is used as it is; otherwise "
                           "the next finer one is averaged"},
                  {.name = "spacing",
                   .type = KeyType::kFloatList,
                   .unit = "mm",
                   .min = kMinSpacingMm,
                   .max = kMaxSpacingMm,
                   .min_items = 3,
                   .max_items = 3,
                   .help =
                       "for volumes, instead of a level: [z, y, x] from voxel to voxel of a patch"},
                  {.name = "spacing_tolerance",
                   .type = KeyType::kFloat,
                   .fallback = RunConfig{}.spacing_tolerance,
                   .min = 0,
                   .max = 0.5,
                   .help = "relative difference along all axes up to which a level is used as it "
                           "is; otherwise patches are resampled"},
                  ResampleKey(),
                  {.name = "upsample",
                   .type = KeyType::kBool,
                   .fallback = false,
                   .help = "whether an mpp or spacing below the finest level's is interpolated or "
                           "refused"},
                  OffKey("mixed_mpp",
                         "accept images of different um/px at patch.level, instead of refusing "
                         "them"),
                  OffKey("mixed_spacing",
                         "accept volumes of different spacings at patch.level, and of different "
                         "orientations, instead of refusing them"),
                  ChannelsKey(),
                  FillKey()},
      .check = CheckPatch};
}

Status CheckDataset(const Json& dataset) {
  for (const Json& path : dataset) {
    const auto& text = path.get_ref<const std::string&>();
    if (text.empty()) return InvalidArgument("an empty path");
    if (text.find('\0') != std::string::npos) return InvalidArgument("a path with a zero byte");
    if (NamesTable(text) && dataset.size() > 1) {
      return InvalidArgument("a table stands alone: put the other images into it");
    }
  }
  return absl::OkStatus();
}

Status CheckBatch(const Json& batch) {
  if (!batch.contains("global_size") || !batch.contains("per_rank")) return absl::OkStatus();
  return InvalidArgument("global_size and per_rank exclude each other");
}

Key BatchKeys() {
  Key batch = {
      .name = "batch",
      .type = KeyType::kMap,
      .help = "patches that the trainer receives at each step",
      .members =
          {{.name = "global_size",
            .type = KeyType::kInt,
            .unit = "patches",
            .min = 1,
            .max = kMaxGlobalBatch,
            .help = "patches of one step, all ranks together; if omitted: 32, or by per_rank"},
           {.name = "per_rank",
            .type = KeyType::kInt,
            .unit = "patches",
            .min = 1,
            .max = kMaxGlobalBatch,
            .help = "patches of one rank, instead of global_size: times the ranks of the first "
                    "submission it is "
                    "global_size, and stays that when the run is resumed"},
           {.name = "dtype",
            .type = KeyType::kChoice,
            .fallback = "float32",
            .choices = {"uint8", "float16", "bfloat16", "float32"},
            .help = "element type; floats are rounded to nearest, ties to even"},
           {.name = "layout",
            .type = KeyType::kChoice,
            .fallback = "nchw",
            .choices = Choices(kLayouts),
            .help = "planes of channels, or channels interleaved"},
           {.name = "prefetch",
            .type = KeyType::kInt,
            .fallback = 2,
            .unit = "batches",
            .min = 1,
            .max = kMaxPrefetch,
            .help =
                "batches made ahead; the ring has two slots more, and a spare; changes no byte"},
           {.name = "tail",
            .type = KeyType::kChoice,
            .fallback = "keep",
            .choices = Choices(kAllTails),
            .help = "the last incomplete batch: smaller, left out, filled with zeros, or filled "
                    "with the epoch's first patches"},
           {.name = "meta",
            .type = KeyType::kBool,
            .fallback = false,
            .help = "adds the arrays ordinal, image_index, level and box, which say where each "
                    "patch came from; in sequential order also last_of_image"}},
      .check = CheckBatch};
  for (Key& key : BagKeys()) batch.members.push_back(std::move(key));
  return batch;
}

Status CheckPorts(const Json& ports) {
  return ParsePortRange(ports.get_ref<const std::string&>()).status();
}

Key NetworkKeys() {
  return {.name = "data",
          .type = KeyType::kMap,
          .optional = true,
          .help = "how batches reach the trainer from other nodes",
          .members = {{.name = "ports",
                       .type = KeyType::kString,
                       .help = "TCP ports the trainer may listen on, as 7800-7899; if omitted: any "
                               "that is free. Changes no byte",
                       .check = CheckPorts}}};
}

Key StepsKey(const OpTable& ops, std::string name, std::string help) {
  return {.name = std::move(name),
          .type = KeyType::kSteps,
          .fallback = Json::array(),
          .max_items = 32,
          .help = std::move(help),
          .members = ops.Keys()};
}

/// Keys of a dataset that is a table.
std::vector<Key> DatasetTableKeys() {
  Key sampling = SamplingKeys(), batch = BatchKeys();
  sampling.optional = true;
  sampling.help = "keys that replace the config's for this split";
  batch.optional = true;
  for (Key& key : batch.members) key.fallback = nullptr;
  batch.help = "keys that replace the config's for this split";
  return {
      {.name = "stores",
       .type = KeyType::kString,
       .help = "folder of the stores of a table's rows; a row has the store made from its content, "
               "else its slide"},
      {.name = "where",
       .type = KeyType::kNamed,
       .help = "only rows of a table whose columns have these values",
       .members = {{.name = "", .type = KeyType::kStringList, .min_items = 1}}},
      {.name = "split_column",
       .type = KeyType::kString,
       .help = "column of a table that names the split of a row"},
      {.name = "splits",
       .type = KeyType::kNamed,
       .help = "purpose of a split, and its differences: sampling replaces the config's, batch "
               "is merged into it",
       .members = {{.name = "",
                    .type = KeyType::kMap,
                    .members = {{.name = "role",
                                 .type = KeyType::kChoice,
                                 .choices = Choices(kRoles),
                                 .help = "whether augment applies; if omitted: train for the split "
                                         "train, evaluate for val, valid, validation, test, tune"},
                                std::move(sampling),
                                std::move(batch)}}}}};
}

Key AugmentKey(const OpTable& ops) {
  Key key = StepsKey(ops, "augment",
                     "ops applied to splits whose role is train, and to datasets without splits; "
                     "one chain with those of preprocess");
  key.members.push_back(OwnFunctionKey());
  return key;
}

using KeyFault = SamplingFault;

/// Rules between sections. `value` passed the key table.
std::optional<KeyFault> FindFault(const Json& value) {
  if (auto fault = FindSamplingFault(value)) return fault;
  if (auto fault = FindFunctionFault(value)) return KeyFault{fault->key, fault->cause};
  if (auto fault = FindBagFault(value)) return fault;
  const Json& dataset = value["dataset"];
  const bool table = dataset.size() == 1 && NamesTable(dataset[0].get_ref<const std::string&>());
  for (const char* key : {"stores", "where", "split_column", "splits"}) {
    if (value.contains(key) && !table) {
      return KeyFault{key, "the dataset is not a table (a .csv or .tsv file)"};
    }
  }
  if (value.contains("splits") && !value.contains("split_column")) {
    return KeyFault{"splits", "there is no split_column"};
  }
  if (!value.contains("split_column") || !value.contains("where")) return std::nullopt;
  const auto& column = value["split_column"].get_ref<const std::string&>();
  if (!value["where"].contains(column)) return std::nullopt;
  return KeyFault{StrCat("where.", column),
                  "this is the split column; ask for the split instead (--split)"};
}

/// Whether a split is augmented; `asked` overrides its role.
StatusOr<bool> Augments(const RunConfig& config, const std::string& split,
                        std::optional<bool> asked) {
  if (asked) return *asked;
  if (split.empty()) return true;
  if (split == kAllSplits || config.augment.empty()) return false;
  if (const auto role = RoleOf(config, split)) return *role == SplitRole::kTrain;
  return InvalidArgument("key 'augment': it applies to splits whose role is train, and the split '",
                         split, "' has none: say `splits: {", split,
                         ": {role: train}}`, or `role: evaluate`");
}

Json SizeJson(const RunConfig& config) {
  const Extent& p = config.patch;
  return config.has_depth ? Json{p.z, p.y, p.x} : Json{p.y, p.x};
}

/// `value` passed the table, so every member exists and has its type.
RunConfig FromChecked(const OpTable& ops, const Json& value) {
  RunConfig config;
  config.ops = &ops;
  if (value.contains("dataset")) {
    config.dataset = value["dataset"].get<std::vector<std::string>>();
  }
  config.stores = value.value("stores", "");
  if (value.contains("where")) value["where"].get_to(config.where);
  config.split_column = value.value("split_column", "");
  config.splits = value.value("splits", Json::object());
  config.on_bad_image = ValueIn(kOnBadImage, value["on_bad_image"]);
  if (value.contains("numerics")) {
    config.numerics = NumericsFromName(value["numerics"].get_ref<const std::string&>());
  }
  config.seed = value["seed"].get<std::uint64_t>();
  const Json& patch = value["patch"];
  const auto size = patch["size"].get<std::vector<std::int64_t>>();
  config.has_depth = size.size() == 3;
  config.patch = {config.has_depth ? size[0] : 1, size[size.size() - 2], size.back()};
  config.level = patch["level"].get<std::uint32_t>();
  config.mpp = patch["mpp"].get<std::vector<double>>();
  config.mpp_tolerance = patch["mpp_tolerance"].get<double>();
  if (patch.contains("spacing")) {
    const auto mm = patch["spacing"].get<std::vector<double>>();
    config.spacing = PerAxis{mm[0], mm[1], mm[2]};
  }
  config.spacing_tolerance = patch["spacing_tolerance"].get<double>();
  config.separate_z = SeparatesZ(patch["resample"]);
  config.upsample = patch["upsample"].get<bool>();
  config.mixed_mpp = patch["mixed_mpp"].get<bool>();
  config.mixed_spacing = patch["mixed_spacing"].get<bool>();
  config.channels = patch["channels"].get<std::vector<std::string>>();
  if (patch.contains("fill")) config.fill = patch["fill"].get<double>();
  ReadSampling(value["sampling"], config);
  const Json& batch = value["batch"];
  config.bag = BagOf(batch);
  const bool has_size = batch.contains("global_size");
  config.per_rank = batch.value("per_rank", has_size ? std::uint32_t{0} : config.bag);
  config.global_size =
      batch.value("global_size", config.per_rank == 0 ? kDefaultGlobalBatch : std::uint32_t{0});
  config.dtype = *DTypeFromName(batch["dtype"].get_ref<const std::string&>());
  config.layout = ValueIn(kLayouts, batch["layout"]);
  config.prefetch = batch["prefetch"].get<std::uint32_t>();
  config.tail = *TailFromName(batch["tail"].get_ref<const std::string&>());
  config.outputs = value.value("outputs", Json::object());
  config.weights = value.value("weights", std::vector<std::string>());
  // Results need the places, and bags say by ordinals what is padding.
  config.meta = batch["meta"].get<bool>() || IsMap(config) || config.bag != 0;
  config.labels = LabelsConfigOf(value.value("labels", Json::object()));
  if (value.contains("data")) config.data_ports = value["data"].value("ports", "");
  config.preprocess = value["preprocess"];
  config.augment = value["augment"];
  return config;
}

}  // namespace

bool IsMap(const RunConfig& config) { return !config.outputs.empty(); }

bool HasTable(const RunConfig& config) {
  return config.dataset.size() == 1 && NamesTable(config.dataset[0]);
}

Key RunConfigKeys(const OpTable& ops) {
  Key run = {
      .name = "run",
      .type = KeyType::kMap,
      .help = "a stream of training batches",
      .members = {
          {.name = "dataset",
           .type = KeyType::kStringList,
           .required = true,
           .min_items = 1,
           .max_items = 100'000,
           .help = "a table of images (.csv, .tsv), or a store, a folder of stores, slides, or a "
                   "list of those",
           .check = CheckDataset},
          OnBadImageKey(),
          {.name = "numerics",
           .type = KeyType::kChoice,
           .choices = Choices(kAllNumerics),
           .help = "implementation of the ops; if omitted: the cluster's, recorded in the plan"},
          {.name = "seed",
           .type = KeyType::kInt,
           .fallback = 0,
           .min = 0,
           .help = "seed of every random number of the run"},
          PatchKeys(),
          LabelsKey(),
          SamplingKeys(),
          BatchKeys(),
          NetworkKeys(),
          StepsKey(ops, "preprocess", "ops applied to every patch; their order is fixed"),
          AugmentKey(ops)}};
  std::vector<Key> table = DatasetTableKeys();
  for (Key& key : MapKeys()) run.members.push_back(std::move(key));
  run.members.insert(run.members.begin() + 1, std::make_move_iterator(table.begin()),
                     std::make_move_iterator(table.end()));
  return run;
}

StatusOr<RunConfig> RunConfigFromYaml(const OpTable& ops, const config::YamlNode& node) {
  PB_ASSIGN_OR_RETURN(const Json value, config::Validate(node, RunConfigKeys(ops)));
  auto fault = FindFault(value);
  if (!fault) {
    if (auto idle = FindIdleKey(ops, node, value)) fault = KeyFault{idle->key, idle->cause};
  }
  if (!fault) return FromChecked(ops, value);
  config::YamlNode at = node;
  at.line = config::LineOf(node, fault->key);
  return InvalidArgument(at.Where(), ": key '", fault->key, "': ", fault->cause);
}

StatusOr<RunConfig> RunConfigFromJson(const OpTable& ops, const Json& value) {
  PB_ASSIGN_OR_RETURN(const Json checked,
                      config::ValidateJson(value, RunConfigKeys(ops), "run config"));
  auto fault = FindFault(checked);
  if (!fault) fault = FindMapFault(checked);
  if (!fault) return FromChecked(ops, checked);
  return InvalidArgument("run config: key '", fault->key, "': ", fault->cause);
}

std::optional<SplitRole> RoleOf(const RunConfig& config, std::string_view split) {
  const auto stated = config.splits.find(std::string(split));
  if (stated != config.splits.end() && stated->contains("role")) {
    return ValueIn(kRoles, (*stated)["role"]);
  }
  for (const auto& [name, role] : kUsualSplits) {
    if (name == split) return role;
  }
  return std::nullopt;
}

StatusOr<RunConfig> ForSplit(const RunConfig& config, const std::string& split,
                             std::optional<bool> augmented) {
  PB_ASSIGN_OR_RETURN(const bool augments, Augments(config, split, augmented));
  Json value = ToJson(config);
  value.erase("splits");
  const auto found = config.splits.find(split);
  if (found != config.splits.end()) {
    if (found->contains("sampling")) value["sampling"] = (*found)["sampling"];
    MergeBatch(found->value("batch", Json::object()), value["batch"]);
  }
  if (!augments) value["augment"] = Json::array();
  return RunConfigFromJson(*config.ops, value);
}

Json ToJson(const RunConfig& config) {
  Json value = {{"dataset", config.dataset},
                {"on_bad_image", NameOf(config.on_bad_image)},
                {"seed", config.seed},
                {"patch",
                 {{"size", SizeJson(config)},
                  {"level", config.level},
                  {"mpp", config.mpp},
                  {"mpp_tolerance", config.mpp_tolerance},
                  {"spacing_tolerance", config.spacing_tolerance},
                  {"resample", ResampleToJson(config.separate_z)},
                  {"upsample", config.upsample},
                  {"mixed_mpp", config.mixed_mpp},
                  {"mixed_spacing", config.mixed_spacing},
                  {"channels", config.channels}}},
                {"sampling", SamplingToJson(config)},
                {"batch",
                 {{"dtype", patchbay::NameOf(config.dtype)},
                  {"layout", NameOf(config.layout)},
                  {"prefetch", config.prefetch},
                  {"tail", patchbay::NameOf(config.tail)},
                  {"meta", config.meta}}},
                {"preprocess", config.preprocess},
                {"augment", config.augment}};
  if (!config.stores.empty()) value["stores"] = config.stores;
  if (!config.where.empty()) value["where"] = config.where;
  if (!config.split_column.empty()) value["split_column"] = config.split_column;
  if (!config.splits.empty()) value["splits"] = config.splits;
  if (Json labels = ToJson(config.labels); !labels.is_null()) value["labels"] = std::move(labels);
  if (IsMap(config)) value["outputs"] = config.outputs;
  if (!config.weights.empty()) value["weights"] = config.weights;
  if (config.fill) value["patch"]["fill"] = *config.fill;
  if (config.spacing) {
    value["patch"]["spacing"] = {config.spacing->z, config.spacing->y, config.spacing->x};
  }
  if (!config.data_ports.empty()) value["data"]["ports"] = config.data_ports;
  if (config.numerics) value["numerics"] = patchbay::NameOf(*config.numerics);
  if (config.global_size != 0) value["batch"]["global_size"] = config.global_size;
  if (config.per_rank != 0) value["batch"]["per_rank"] = config.per_rank;
  if (config.bag != 0) value["batch"].update({{"by", "image"}, {"patches", config.bag}});
  return value;
}

Status SettleBatch(RunConfig& config, std::uint32_t before, std::uint32_t world_size) {
  if (config.per_rank == 0) return absl::OkStatus();
  const std::uint64_t size = before != 0 ? before : std::uint64_t{config.per_rank} * world_size;
  if (size > kMaxGlobalBatch) {
    return InvalidArgument("settle batch: key 'batch.per_rank': ", config.per_rank, " patches for ",
                           world_size, " ranks: a batch has at most ", kMaxGlobalBatch);
  }
  config.global_size = static_cast<std::uint32_t>(size);
  config.per_rank = 0;
  return absl::OkStatus();
}

Magnification MagnificationOf(const RunConfig& config) {
  return {config.mpp, config.mpp_tolerance, config.upsample, config.patch};
}

PatchKind PatchKindOf(const RunConfig& config) {
  if (config.spacing) return PatchKind::kResampled;
  return config.has_depth ? PatchKind::kVolume : PatchKind::kPlane;
}

WantedSpacing WantedSpacingOf(const RunConfig& config) {
  return {*config.spacing, config.spacing_tolerance, config.upsample, config.patch,
          config.separate_z};
}

std::string_view NameOf(PatchOrder order) { return kOrders.Of(order); }
std::string_view NameOf(PatchLayout layout) { return kLayouts.Of(layout); }
std::string_view NameOf(OnBadImage choice) { return kOnBadImage.Of(choice); }
std::string_view NameOf(SplitRole role) { return kRoles.Of(role); }

}  // namespace patchbay::plan
