#include "runtime/cli/jobs/nnunet_dataset.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/model/source/modality.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxDatasetBytes = 64u << 20;
constexpr const char* kFileName = "dataset.json";

Status Wrong(const std::string& file, std::string_view key, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "scan", file,
                    StrCat("key '", key, "': ", cause));
}

std::optional<int> WholeOf(const Json& value) {
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (number >= 0 && number <= 1'000'000) return static_cast<int>(number);
    return std::nullopt;
  }
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  int number = 0;
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && after == text.data() + text.size() && number >= 0;
  return is_whole ? std::optional(number) : std::nullopt;
}

Status ReadChannels(const std::string& file, const Json& json, NnunetDataset& dataset) {
  const char* key = json.contains("channel_names") ? "channel_names" : "modality";
  if (!json.contains(key)) return Wrong(file, "channel_names", "missing, and so is modality");
  if (const auto modality = DatasetModality(json)) dataset.modality = modality->ToString();
  if (json[key].size() == 1) {
    dataset.channels.emplace_back();
    return absl::OkStatus();
  }
  dataset.channels = DatasetChannels(json);
  if (dataset.channels.empty()) return Wrong(file, key, "not a name for each number from 0 on");
  if (const Status named = CheckChannelNames(dataset.channels); !named.ok()) {
    return Wrong(file, key, MessageOf(named));
  }
  for (const std::string& name : dataset.channels) {
    const auto modality = ChannelModality(name);
    dataset.modalities.push_back(modality ? modality->ToString() : "");
  }
  const std::vector<std::string>& all = dataset.modalities;
  if (std::count(all.begin(), all.end(), all.front()) == std::ssize(all)) {
    dataset.modality = all.front();
  }
  return absl::OkStatus();
}

StatusOr<NnunetRegion> ReadRegion(const std::string& file, const std::string& name,
                                  const Json& values) {
  NnunetRegion region{name, {}};
  for (const Json& value : values) {
    const std::optional<int> number = WholeOf(value);
    if (!number || *number < 1 || *number >= plan::kIgnoreClass) {
      return Wrong(file, StrCat("labels.", name), "a region of other values than 1 to 254");
    }
    region.values.push_back(*number);
  }
  return region.values.empty() ? Wrong(file, StrCat("labels.", name), "a region without values")
                               : StatusOr<NnunetRegion>(std::move(region));
}

std::string NameOfValue(int value) { return StrCat("class_", value); }

/// {"liver": 1} as nnU-Net v2 has it, or {"1": "liver"} as the Decathlon; {"whole": [1, 2]} is a
/// region.
Status ReadClasses(const std::string& file, const Json& json, NnunetDataset& dataset) {
  const Json labels = json.value("labels", Json());
  if (!labels.is_object() || labels.empty()) return Wrong(file, "labels", "not a map of classes");
  std::vector<NnunetClass>& classes = dataset.classes;
  for (const auto& [key, value] : labels.items()) {
    const std::string at = StrCat("labels.", key);
    if (value.is_array()) {
      PB_ASSIGN_OR_RETURN(dataset.regions.emplace_back(), ReadRegion(file, key, value));
      continue;
    }
    std::optional<int> number = WholeOf(value);
    std::string name = key;
    if (!number && value.is_string()) {
      number = WholeOf(Json(key));
      name = value.get<std::string>();
    }
    if (!number || *number >= plan::kIgnoreClass) {
      return Wrong(file, at, "neither a name with a value of 0 to 254 nor a value with a name");
    }
    classes.push_back({name, *number});
  }
  std::set<int> named;
  for (const NnunetClass& one : classes) named.insert(one.value);
  for (const NnunetRegion& region : dataset.regions) {
    for (const int value : region.values) {
      if (named.insert(value).second) classes.push_back({NameOfValue(value), value});
    }
  }
  std::sort(classes.begin(), classes.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  return absl::OkStatus();
}

/// A path that dataset.json names, below its folder and existing.
StatusOr<std::string> PathBelow(const NnunetDataset& dataset, const std::string& file,
                                std::string_view key, const Json& value) {
  if (!value.is_string()) return Wrong(file, key, "no path");
  const fs::path path = fs::path(value.get<std::string>()).lexically_normal();
  if (path.empty() || path.is_absolute() || *path.begin() == "..") {
    return Wrong(file, key, StrCat("'", path.string(), "': not below the dataset's folder"));
  }
  std::error_code error;
  if (fs::is_regular_file(fs::path(dataset.folder) / path, error)) return path.string();
  return Wrong(file, key, StrCat("'", path.string(), "': no such file"));
}

bool IsAppleDouble(const std::string& path) {
  return fs::path(path).filename().string().starts_with("._");
}

/// "training": [{"image", "label"}], or under nnU-Net's "dataset": {case: {"images", "label"}}.
Status AddListed(const std::string& file, const Json& listed, NnunetDataset& dataset) {
  for (const auto& [key, entry] : listed.items()) {
    const std::string at =
        StrCat(listed.is_array() ? "training[" : "dataset.", key, listed.is_array() ? "]" : "");
    if (!entry.is_object()) return Wrong(file, at, "not a map with image and label");
    const bool has_list = entry.contains("images");
    const Json images = has_list ? entry["images"] : Json::array({entry.value("image", Json())});
    if (!images.is_array() || (has_list && images.size() != dataset.channels.size())) {
      return Wrong(file, at + ".images",
                   StrCat("not a list of ", Counted(dataset.channels.size(), "channel")));
    }
    if (images[0].is_string() && IsAppleDouble(images[0].get<std::string>())) continue;
    NnunetCase one;
    for (const Json& image : images) {
      PB_ASSIGN_OR_RETURN(one.images.emplace_back(),
                          PathBelow(dataset, file, at + (has_list ? ".images" : ".image"), image));
    }
    PB_ASSIGN_OR_RETURN(one.label,
                        PathBelow(dataset, file, at + ".label", entry.value("label", Json())));
    one.name = listed.is_array() ? plan::StemOf(one.images.front()) : key;
    dataset.cases.push_back(std::move(one));
  }
  return absl::OkStatus();
}

/// imagesTr/CASE_0000.ENDING, one for each channel, and labelsTr/CASE.ENDING.
Status AddFound(const std::string& file, const Json& json, NnunetDataset& dataset) {
  const Json ending = json.value("file_ending", Json());
  if (!ending.is_string() || ending.get<std::string>().empty()) {
    return Wrong(file, "file_ending", "missing, and there is no list 'training'");
  }
  const std::string tail = StrCat("_0000", ending.get<std::string>());
  std::error_code error;
  std::vector<std::string> names;
  const std::string images = dataset.folder + "/imagesTr";
  for (fs::directory_iterator it(images, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(tail) && !IsAppleDouble(name)) names.push_back(name);
  }
  if (error) return NotFound("scan: ", images, ": ", error.message());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    NnunetCase one{name.substr(0, name.size() - tail.size()), {}, ""};
    for (std::size_t channel = 0; channel < dataset.channels.size(); ++channel) {
      const std::string digits = std::to_string(10'000 + channel).substr(1);
      const Json image = StrCat("imagesTr/", one.name, "_", digits, ending.get<std::string>());
      PB_ASSIGN_OR_RETURN(one.images.emplace_back(),
                          PathBelow(dataset, file, "channel_names", image));
    }
    const Json label = StrCat("labelsTr/", one.name, ending.get<std::string>());
    PB_ASSIGN_OR_RETURN(one.label, PathBelow(dataset, file, "file_ending", label));
    dataset.cases.push_back(std::move(one));
  }
  return absl::OkStatus();
}

Status CheckCases(const std::string& file, const NnunetDataset& dataset) {
  std::set<std::string> names;
  for (const NnunetCase& one : dataset.cases) {
    if (!names.insert(one.name).second) {
      return Wrong(file, "training", StrCat("case '", one.name, "' is listed twice"));
    }
  }
  return names.empty() ? Wrong(file, "training", "no case has an image") : absl::OkStatus();
}

Status ReadFolds(NnunetDataset& dataset) {
  const std::string file = dataset.folder + "/splits_final.json";
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), file, kMaxDatasetBytes);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  PB_RETURN_IF_ERROR(text.status());
  PB_ASSIGN_OR_RETURN(const Json folds, ParseJson(*text, file, kMaxDatasetBytes));
  if (!folds.is_array()) return Wrong(file, "0", "not a list of folds");
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < dataset.cases.size(); ++i) index[dataset.cases[i].name] = i;
  for (std::size_t fold = 0; fold < folds.size(); ++fold) {
    std::vector<std::string>& own = dataset.folds.emplace_back(dataset.cases.size());
    for (const char* split : {"train", "val"}) {
      const std::string key = StrCat(fold, ".", split);
      const Json names = folds[fold].is_object() ? folds[fold].value(split, Json()) : Json();
      if (!names.is_array()) return Wrong(file, key, "not a list of cases");
      for (const Json& name : names) {
        const auto found = name.is_string() ? index.find(name.get<std::string>()) : index.end();
        if (found == index.end()) {
          return Wrong(file, key, StrCat(DumpJson(name), ": not a case of the dataset"));
        }
        if (!own[found->second].empty()) {
          return Wrong(file, key, StrCat(DumpJson(name), ": listed twice in one fold"));
        }
        own[found->second] = split;
      }
    }
  }
  return absl::OkStatus();
}

/// "kidney_tumour" from "Kidney tumour!": a valid name for a class table.
std::string ClassName(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool is_plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    name.push_back(is_plain || lower == '-' ? lower : '_');
  }
  return name;
}

}  // namespace

bool NamesNnunetDataset(const std::string& path) {
  std::error_code error;
  if (fs::path(path).filename() == kFileName) return fs::is_regular_file(path, error);
  return fs::is_regular_file(fs::path(path) / kFileName, error);
}

StatusOr<NnunetDataset> ReadNnunetDataset(const std::string& path) {
  NnunetDataset dataset;
  const bool is_file = fs::path(path).filename() == kFileName;
  dataset.folder = is_file ? fs::path(path).parent_path().string() : path;
  const std::string file = StrCat(dataset.folder, "/", kFileName);
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(Folders::OfThisUser(), file, kMaxDatasetBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, file, kMaxDatasetBytes));
  if (!json.is_object()) return Wrong(file, "labels", "the file is not a map");
  PB_RETURN_IF_ERROR(ReadChannels(file, json, dataset));
  PB_RETURN_IF_ERROR(ReadClasses(file, json, dataset));
  const Json training = json.value("training", Json()), listed = json.value("dataset", Json());
  if (training.is_array() || listed.is_object()) {
    PB_RETURN_IF_ERROR(AddListed(file, training.is_array() ? training : listed, dataset));
  } else {
    PB_RETURN_IF_ERROR(AddFound(file, json, dataset));
  }
  PB_RETURN_IF_ERROR(CheckCases(file, dataset));
  PB_RETURN_IF_ERROR(ReadFolds(dataset));
  return dataset;
}

std::string CohortTableOf(const NnunetDataset& dataset, const std::string& folder,
                          const ContentHashes& hashes) {
  const auto path_of = [&](const std::string& name) {
    const std::string whole = StrCat(dataset.folder, "/", name);
    return whole.starts_with(folder) ? whole.substr(folder.size()) : whole;
  };
  std::vector<std::string> header = {"path", "slide_id", "patient_id", "annotation", "modality"};
  const bool has_rows_of_channels =
      std::any_of(dataset.cases.begin(), dataset.cases.end(),
                  [](const NnunetCase& one) { return one.images.size() > 1; });
  if (has_rows_of_channels) header.insert(header.end(), {"image_id", "channel"});
  if (!hashes.empty()) header.push_back("content_hash");
  for (std::size_t i = 0; i < dataset.folds.size(); ++i) header.push_back(StrCat("fold_", i));
  std::string text = CsvRow(header);
  for (std::size_t i = 0; i < dataset.cases.size(); ++i) {
    const NnunetCase& one = dataset.cases[i];
    const bool is_of_rows = one.images.size() > 1;
    for (std::size_t channel = 0; channel < one.images.size(); ++channel) {
      const std::string& image = one.images[channel];
      std::vector<std::string> cells = {
          path_of(image), is_of_rows ? plan::StemOf(image) : one.name, one.name,
          channel == 0 ? path_of(one.label) : "",
          is_of_rows ? dataset.modalities[channel] : dataset.modality};
      if (has_rows_of_channels) {
        cells.push_back(is_of_rows ? one.name : "");
        cells.push_back(is_of_rows ? dataset.channels[channel] : "");
      }
      if (!hashes.empty()) {
        const auto hash = hashes.find(image);
        cells.push_back(hash == hashes.end() ? "" : hash->second);
      }
      for (const auto& fold : dataset.folds) cells.push_back(fold[i]);
      for (std::string& cell : cells) cell = CsvField(cell);
      text += CsvRow(cells);
    }
  }
  return text;
}

StatusOr<std::string> ClassTableOf(const NnunetDataset& dataset) {
  std::string text, background;
  for (const NnunetRegion& region : dataset.regions) {
    text += StrCat("# region ", ClassName(region.name), ":");
    for (const int value : region.values) {
      const auto one = std::find_if(dataset.classes.begin(), dataset.classes.end(),
                                    [value](const auto& c) { return c.value == value; });
      text += StrCat(" ", ClassName(one->name));
    }
    text += "\n";
  }
  text += "classes:\n";
  std::set<std::string> names;
  // nnU-Net's `ignore` is the highest value: not trained on.
  for (const NnunetClass& one : dataset.classes) {
    const bool is_ignored = one.name == "ignore";
    const std::string name = ClassName(one.name);
    if (!names.insert(name).second) {
      return InvalidArgument("scan: labels: two classes are called '", name, "' in lower case");
    }
    if (one.value == 0) background = name;
    text +=
        StrCat("  - {name: \"", name, "\", value: ", is_ignored ? plan::kIgnoreClass : one.value,
               ", from: [", one.value, "]}\n");
  }
  if (!background.empty()) text += StrCat("exhaustive: true\nbackground: \"", background, "\"\n");
  return text;
}

}  // namespace patchbay::cli
