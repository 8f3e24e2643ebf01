// A dataset as nnU-Net v2 or the Medical Segmentation Decathlon lays it out, as a table of images.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::cli {

struct NnunetCase {
  std::string name;                 ///< "colon_001"
  std::vector<std::string> images;  ///< one file of all channels, or one for each
  std::string label;                ///< all paths below the dataset's folder
};

struct NnunetClass {
  std::string name;  ///< as the file has it
  int value = 0;     ///< 255: to be ignored
};

/// A label of nnU-Net that is several values of the masks.
struct NnunetRegion {
  std::string name;
  std::vector<int> values;
};

struct NnunetDataset {
  std::string folder;                   ///< absolute
  std::string modality;                 ///< modality of all channels; "": not known
  std::vector<std::string> channels;    ///< their names, in order
  std::vector<std::string> modalities;  ///< modality of each channel; "": not known
  std::vector<NnunetCase> cases;
  std::vector<NnunetClass> classes;  ///< values of masks; "class_2": regions alone have it
  std::vector<NnunetRegion> regions;
  /// For each fold of splits_final.json and each case: "train", "val" or "".
  std::vector<std::vector<std::string>> folds;
};

/// True for a dataset.json, and a folder with one.
bool NamesNnunetDataset(const std::string& path);

/// Reads dataset.json, with labels in either form, and splits_final.json if there is one. `path` is
/// absolute. Files that begin with "._" are skipped. InvalidArgument, naming file and key:
/// malformed, channels without names, a case without label or without an image of each channel, a
/// path outside the folder, a fold with an unknown case.
StatusOr<NnunetDataset> ReadNnunetDataset(const std::string& path);

/// Content hashes of images by their paths.
using ContentHashes = std::map<std::string, std::string>;

/// A cohort table: path, slide_id, patient_id, annotation, modality; image_id and channel where a
/// case has a file for each channel, which is a row then, the first with the annotation;
/// content_hash where any are known, fold_0 and on. Paths are relative to `folder` (which ends in
/// '/') where they lie below it.
std::string CohortTableOf(const NnunetDataset& dataset, const std::string& folder,
                          const ContentHashes& hashes = {});

/// A class table for `labels import`, with a comment for each region.
StatusOr<std::string> ClassTableOf(const NnunetDataset& dataset);

}  // namespace patchbay::cli
