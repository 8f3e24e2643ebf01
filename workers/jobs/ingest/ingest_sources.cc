#include "workers/jobs/ingest/ingest_sources.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/ingest_settings.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/model/source/series_path.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/staged/staged_job.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/identity.h"
#include "workers/jobs/task/mask_files.h"
#include "workers/jobs/task/stated_modality.h"

namespace patchbay::workers {
namespace {

VolumeFormat FormatByName(const std::string& path) {
  const bool is_nifti = path.ends_with(".nii") || path.ends_with(".gz");
  return is_nifti ? VolumeFormat::kNifti : VolumeFormat::kDicom;
}

/// "study#1.2.840.part2": without a path's mark, that of a series in a file.
std::string NameOfPart(const std::string& source, std::size_t part) {
  return StrCat(source, source.find('#') == std::string::npos ? "#part" : ".part", part);
}

/// Into how many volumes a series is split; one that cannot be opened is one, whose own task tells
/// why.
StatusOr<std::size_t> CountParts(TaskContext& context, const PlannedVolume& volume) {
  PB_ASSIGN_OR_RETURN(const Repairs rules, ParseRepairs(volume.repair));
  if (volume.format != VolumeFormat::kDicom || !rules.contains(Repair::kSplit)) return 1;
  const auto parts = OpenParts(context.allowed, volume.files, ProgressOf(context), rules);
  if (absl::IsCancelled(parts.status())) return parts.status();
  return parts.ok() ? parts->Count() : 1;
}

/// The facts about a source that come from its row in a table.
struct StatedFacts {
  std::optional<ModalityRecord> modality;
  std::string repair;  ///< the settings' where the row has none
};

/// The volumes of a file that has several become channels, where a dataset.json names as many. A
/// file whose volumes have no names stays one volume, whose own task tells why it is not read.
Status NameVolumes(TaskContext& context, const FoundVolume& volume, PlannedImage& planned) {
  if (volume.channels == 1) return absl::OkStatus();
  const std::vector<std::string> names = StatedChannels(context, planned.files.front());
  if (names.size() != static_cast<std::size_t>(volume.channels)) return absl::OkStatus();
  const Status named = CheckChannelNames(names);
  if (!named.ok()) return Annotate(named, "dataset.json");
  for (const std::string& name : names) {
    PlannedChannel channel{static_cast<const PlannedVolume&>(planned), name, volume.name};
    channel.number = static_cast<std::int64_t>(planned.channels.size());
    planned.channels.push_back(std::move(channel));
  }
  return absl::OkStatus();
}

/// A file that should be a volume but is none is added too: its reason shows when it is read.
Status AddVolumes(TaskContext& context, FoundVolumes found, const StatedFacts& stated,
                  FoundSources& sources, std::set<std::string>& seen) {
  for (const std::string& path : found.unreadable) {
    found.volumes.push_back({path, FormatByName(path), {path}, 0});
  }
  for (FoundVolume& volume : found.volumes) {
    if (sources.masks.contains(volume.name)) continue;
    if (!seen.insert(volume.name).second) continue;
    PlannedImage planned{{volume.format, std::move(volume.files), volume.voxel_bytes,
                          stated.modality, stated.repair}};
    PB_RETURN_IF_ERROR(NameVolumes(context, volume, planned));
    PB_ASSIGN_OR_RETURN(const std::size_t parts, CountParts(context, planned));
    for (std::size_t part = parts > 1 ? 1 : 0; part <= (parts > 1 ? parts : 0); ++part) {
      planned.part = part;
      planned.voxel_bytes = volume.voxel_bytes / parts;
      sources.volumes[sources.names.size()] = planned;
      sources.names.push_back(part == 0 ? volume.name : NameOfPart(volume.name, part));
    }
  }
  return absl::OkStatus();
}

/// The search for slides skips the files of volumes.
void LeaveOutVolumes(FoundSources& sources) {
  for (const auto& [place, volume] : sources.volumes) LeaveOut(volume.files, sources.skipped_files);
  for (const auto& [mask, reason] : sources.masks) {
    LeaveOut({mask}, sources.skipped_files);
    ++sources.skipped_files["mask"];
  }
}

/// Marks the volumes of a folder that are masks. One that is named itself, before or after the
/// folder, is none.
Status FindMasks(TaskContext& context, const FoundVolumes& found, bool is_folder,
                 const std::set<std::string>& seen, FoundSources& sources) {
  for (const FoundVolume& volume : found.volumes) {
    if (!is_folder) sources.masks.erase(volume.name);
    if (!is_folder || seen.contains(volume.name)) continue;
    PB_ASSIGN_OR_RETURN(const std::string reason, MaskReason(context, volume));
    if (!reason.empty()) sources.masks.emplace(volume.name, reason);
  }
  return absl::OkStatus();
}

/// The slides of a folder but for masks, or a file that is named itself.
Status AddSlides(TaskContext& context, const std::vector<std::string>& slides, bool is_folder,
                 FoundSources& sources, std::set<std::string>& seen) {
  for (const std::string& slide : slides) {
    std::string mask;
    if (!is_folder) sources.masks.erase(slide);
    if (is_folder && !seen.contains(slide)) {
      PB_ASSIGN_OR_RETURN(mask, MaskReason(context, slide));
    }
    if (!mask.empty()) {
      sources.masks.emplace(slide, mask);
    } else if (seen.insert(slide).second) {
      sources.names.push_back(slide);
    }
  }
  return absl::OkStatus();
}

Status RefuseChoice(const std::string& path, std::string_view cause) {
  return ErrorAbout(
      absl::StatusCode::kInvalidArgument, "find images", path,
      StrCat("columns '", kFocalPlaneColumn, "' and '", kOpticalPathColumn, "': ", cause));
}

/// Notes the choice of a row, whose slides are the names from `before` on. Rows that name one slide
/// by several of its files have one choice.
Status TakeChoice(const std::string& path, const std::vector<std::string>& slides,
                  std::size_t before, const SlideChoice& choice, FoundSources& sources) {
  if (slides.size() != 1) {
    return choice.IsMade() ? RefuseChoice(path, "a row of several slides") : absl::OkStatus();
  }
  if (sources.names.size() > before) {
    if (choice.IsMade()) sources.choices[before] = choice;
    return absl::OkStatus();
  }
  const auto at = std::find(sources.names.begin(), sources.names.end(), slides.front());
  const auto made = sources.choices.find(static_cast<std::size_t>(at - sources.names.begin()));
  if (choice == (made == sources.choices.end() ? SlideChoice() : made->second)) {
    return absl::OkStatus();
  }
  return RefuseChoice(path,
                      "another row chooses otherwise of this slide, which becomes one store: "
                      "ingest them apart, each into an --out of its own");
}

/// The tiles of a folder that has neither slides nor volumes. False where there are none.
StatusOr<bool> AddTiles(TaskContext& context, const std::string& path, FoundSources& sources,
                        std::set<std::string>& seen) {
  if (!IsFolder(context.allowed, path)) return false;
  PB_ASSIGN_OR_RETURN(const std::string folder, context.MayRead(path));
  PB_ASSIGN_OR_RETURN(TileList tiles, ListTiles(context.allowed, folder, OtherImages::kAreSkipped,
                                                ProgressOf(context)));
  if (tiles.files.empty()) return false;
  PB_RETURN_IF_ERROR(tiles.fault);
  LeaveOut(tiles.files, sources.skipped_files);
  if (!seen.insert(folder).second) return true;
  sources.tiles[sources.names.size()] = std::move(tiles);
  sources.names.push_back(folder);
  return true;
}

Status OnlyMasks(const std::string& folder, std::size_t masks) {
  return ErrorAbout(absl::StatusCode::kNotFound, "find images", folder,
                    StrCat("no images, only ", Counted(masks, "mask"),
                           " (all values are classes): name the files that are images"));
}

/// The one series, named by its pseudonym, among the volumes of a folder.
StatusOr<FoundVolumes> OnlySeries(const FoundVolumes& found, const SeriesPath& named,
                                  const std::string& key) {
  FoundVolumes one;
  for (const FoundVolume& volume : found.volumes) {
    if (PseudonymOf(key, "series", volume.series_uid) == named.series)
      one.volumes.push_back(volume);
  }
  if (!one.volumes.empty()) return one;
  return ErrorAbout(
      absl::StatusCode::kNotFound, "find volumes", named.path,
      StrCat("the series ", named.series,
             " is not there: moved since it was scanned, or scanned under another pseudonym key"));
}

/// Finds the volumes below the paths of sources. A folder is searched once, even if several of its
/// series are named one after another.
class VolumeFinder {
 public:
  VolumeFinder(TaskContext& context, std::string key) : context_(context), key_(std::move(key)) {}

  StatusOr<FoundVolumes> Find(const SeriesPath& named) {
    const auto may_read = [&](const std::string& path) { return context_.MayRead(path); };
    const auto progress = ProgressOf(context_);
    if (named.series.empty()) return FindVolumes(context_.allowed, named.path, may_read, progress);
    if (named.path != folder_) {
      PB_ASSIGN_OR_RETURN(found_, FindVolumes(context_.allowed, named.path, may_read, progress));
      folder_ = named.path;
    }
    return OnlySeries(found_, named, key_);
  }

 private:
  TaskContext& context_;
  const std::string key_;
  std::string folder_;  ///< the last of which a series was named
  FoundVolumes found_;
};

/// Images whose channels are several sources.
class ChannelImages {
 public:
  ChannelImages(TaskContext& context, FoundSources& sources)
      : context_(context), sources_(sources) {}

  /// The one volume behind a source becomes a channel of its image.
  Status Add(const ChannelOfImage& named, const std::string& path, FoundVolumes found,
             const StatedFacts& stated) {
    const auto refuse = [&](std::string_view cause) {
      return ErrorAbout(absl::StatusCode::kInvalidArgument, "find volumes", path,
                        StrCat("channel '", named.name, "': ", cause));
    };
    if (found.volumes.empty()) return refuse("it is no volume");
    if (found.volumes.size() > 1 || found.volumes.front().channels > 1) {
      return refuse("it is several volumes, and a channel is one");
    }
    FoundVolume& volume = found.volumes.front();
    PlannedChannel channel{{volume.format, std::move(volume.files), volume.voxel_bytes,
                            stated.modality, stated.repair},
                           named.name,
                           volume.name};
    PB_ASSIGN_OR_RETURN(const std::size_t parts, CountParts(context_, channel));
    if (parts > 1) return refuse(StrCat("it is split into ", parts, " volumes"));
    images_[named.image].emplace(named.place, std::move(channel));
    return absl::OkStatus();
  }

  /// Puts the images behind the other sources.
  void Finish() {
    for (auto& [image, channels] : images_) {
      PlannedImage& planned = sources_.volumes[sources_.names.size()];
      static_cast<PlannedVolume&>(planned) = channels.begin()->second;
      sources_.names.push_back(channels.begin()->second.source);
      planned.files.clear();
      planned.repair.clear();
      planned.voxel_bytes = 0;
      for (auto& [place, channel] : channels) {
        planned.files.insert(planned.files.end(), channel.files.begin(), channel.files.end());
        planned.voxel_bytes += channel.voxel_bytes;
        const bool has_both = !planned.repair.empty() && !channel.repair.empty();
        planned.repair += StrCat(has_both ? "," : "", channel.repair);
        planned.channels.push_back(std::move(channel));
      }
    }
  }

 private:
  TaskContext& context_;
  FoundSources& sources_;
  std::map<std::size_t, std::map<std::size_t, PlannedChannel>> images_;  ///< by place
};

StatusOr<StatedFacts> FactsInTable(const JobManifest& asked, const std::string& source,
                                   const std::string& repair) {
  StatedFacts facts{std::nullopt, repair};
  const auto cell = asked.modalities.find(source);
  if (cell == asked.modalities.end()) return facts;
  PB_ASSIGN_OR_RETURN(const Modality modality, ParseModality(cell->second));
  facts.modality = ModalityRecord{modality, "table"};
  return facts;
}

/// The rules of each source: those of its row in the payload, else the settings'.
StatusOr<std::vector<std::string>> RepairsOfSources(const JobManifest& asked, const Json& payload,
                                                    const std::string& otherwise) {
  std::vector<std::string> repairs(asked.sources.size(), otherwise);
  const Json stated = payload.value(kRepairsOfRows, Json::object());
  for (const auto& [rules, rows] : stated.items()) {
    for (const Json& row : rows) {
      if (!row.is_number_unsigned() || row.get<std::size_t>() >= repairs.size()) {
        return InvalidArgument("ingest settings: ", kRepairsOfRows, ": no such source");
      }
      repairs[row.get<std::size_t>()] = rules;
    }
  }
  return repairs;
}

/// The sources that are channels, in the payload. InvalidArgument unless each image there has two
/// or more of different names, and each source is one of them at most.
StatusOr<ChannelRows> ChannelsOfSources(const JobManifest& asked, const Json& payload) {
  ChannelRows rows;
  const Json images = payload.value(kChannelsOfRows, Json::array());
  const auto refuse = [](std::string_view cause) {
    return InvalidArgument("ingest settings: ", kChannelsOfRows, ": ", cause);
  };
  if (!images.is_array()) return refuse("not a list of images");
  for (std::size_t image = 0; image < images.size(); ++image) {
    std::vector<std::string> names;
    if (!images[image].is_array() || images[image].size() < 2) {
      return refuse("not a list of two channels or more");
    }
    for (const Json& channel : images[image]) {
      const bool is_pair = channel.is_array() && channel.size() == 2 && channel[0].is_string() &&
                           channel[1].is_number_unsigned();
      if (!is_pair || channel[1].get<std::size_t>() >= asked.sources.size()) {
        return refuse("not a name and the number of a source");
      }
      names.push_back(channel[0].get<std::string>());
      if (!rows.emplace(channel[1].get<std::size_t>(),
                        ChannelOfImage{image, names.size() - 1, names.back()})
               .second) {
        return refuse("a source is there twice");
      }
    }
    PB_RETURN_IF_ERROR(Annotate(CheckChannelNames(names), "ingest settings"));
  }
  return rows;
}

/// The choice of each source, in the payload.
StatusOr<std::vector<SlideChoice>> ChoicesOfSources(const JobManifest& asked, const Json& payload) {
  constexpr std::string_view kWhat = "ingest settings: choices";
  std::vector<SlideChoice> choices(asked.sources.size());
  PB_ASSIGN_OR_RETURN(const auto stated, FromJson<std::vector<ChoiceOfRows>>(
                                             payload.value(kChoicesOfRows, Json::array()), kWhat));
  for (const ChoiceOfRows& choice : stated) {
    for (const std::uint64_t source : choice.sources) {
      if (source >= choices.size()) return InvalidArgument(kWhat, ": no such source");
      choices[source] = choice;
    }
  }
  return choices;
}

}  // namespace

StatusOr<SourceRows> ReadSourceRows(const JobManifest& asked, const Json& payload,
                                    const std::string& repair) {
  SourceRows rows;
  PB_ASSIGN_OR_RETURN(rows.repairs, RepairsOfSources(asked, payload, repair));
  PB_ASSIGN_OR_RETURN(rows.channels, ChannelsOfSources(asked, payload));
  PB_ASSIGN_OR_RETURN(rows.choices, ChoicesOfSources(asked, payload));
  return rows;
}

StatusOr<FoundSources> FindSources(TaskContext& context, const JobManifest& asked,
                                   const SourceRows& rows) {
  FoundSources sources;
  std::set<std::string> seen;
  VolumeFinder finder(context, asked.series_key);
  ChannelImages images(context, sources);
  for (std::size_t i = 0; i < asked.sources.size(); ++i) {
    const std::string& path = asked.sources[i];
    const std::size_t before = seen.size();
    const bool is_there = Exists(context.allowed, path);
    const SeriesPath series = is_there ? SeriesPath{path, ""} : SplitSeriesPath(path);
    // A path that cannot be searched for volumes is searched for slides: that search keeps
    // unreadable paths.
    auto found = finder.Find(series);
    if (absl::IsCancelled(found.status())) return found.status();
    if (!found.ok() && !series.series.empty()) return found.status();
    if (const auto named = rows.channels.find(i); named != rows.channels.end()) {
      PB_RETURN_IF_ERROR(found.status());
      PB_ASSIGN_OR_RETURN(const StatedFacts stated, FactsInTable(asked, path, rows.repairs[i]));
      PB_RETURN_IF_ERROR(images.Add(named->second, path, *std::move(found), stated));
      continue;
    }
    const bool is_folder = IsFolder(context.allowed, path);
    const std::size_t masks_before = sources.masks.size();
    if (found.ok()) PB_RETURN_IF_ERROR(FindMasks(context, *found, is_folder, seen, sources));
    PB_ASSIGN_OR_RETURN(const StatedFacts stated, FactsInTable(asked, path, rows.repairs[i]));
    if (found.ok()) {
      PB_RETURN_IF_ERROR(AddVolumes(context, *std::move(found), stated, sources, seen));
    }
    if (!series.series.empty()) continue;
    const bool has_volumes = seen.size() > before;
    if (has_volumes && rows.choices[i].IsMade()) return RefuseChoice(path, "it is no DICOM slide");
    if (has_volumes && !is_folder) continue;
    const std::size_t names_before = sources.names.size();
    const auto slides = FindImages(context, {path},
                                   {.stores = false,
                                    .most = kMaxSlides,
                                    .keep_unreadable = true,
                                    .skipped_files = &sources.skipped_files});
    if (slides.ok()) {
      PB_RETURN_IF_ERROR(AddSlides(context, *slides, is_folder, sources, seen));
      PB_RETURN_IF_ERROR(TakeChoice(path, *slides, names_before, rows.choices[i], sources));
    } else if (!absl::IsNotFound(slides.status())) {
      return slides.status();
    }
    if (seen.size() > before) continue;
    const std::size_t masks = sources.masks.size() - masks_before;
    if (masks > 0) return OnlyMasks(path, masks);
    PB_ASSIGN_OR_RETURN(const bool are_tiles, AddTiles(context, path, sources, seen));
    if (are_tiles) continue;
    if (!slides.ok()) return slides.status();
  }
  images.Finish();
  LeaveOutVolumes(sources);
  if (sources.names.size() <= kMaxSlides) return sources;
  return InvalidArgument("find images: more than ", kMaxSlides, " images; split the dataset");
}

}  // namespace patchbay::workers
