// The task that looks at the images of a lock: its payload, and its result.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/hash.h"
#include "runtime/model/plan/plan_fields.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::plan {

struct LockRequest {
  Json config = Json::object();        ///< ToJson of the RunConfig
  std::vector<std::string> sets = {};  ///< label sets that the lock pins

  static constexpr auto Fields() {
    return AsObject(Field("config", &LockRequest::config).Required(),
                    Field("sets", &LockRequest::sets));
  }
};

/// An image as it is now.
struct FoundImage {
  std::string path = {};  ///< canonical
  Digest digest = {};     ///< PlannedImage::digest
  /// Label set -> revision; without sets that the image lacks.
  std::map<std::string, Digest> sets = {};

  static constexpr auto Fields() {
    return AsObject(Field("path", &FoundImage::path).Required(),
                    Field("digest", &FoundImage::digest).Required(),
                    Field("sets", &FoundImage::sets));
  }
};

struct FoundImages {
  std::vector<FoundImage> images = {};  ///< images of the dataset, in its order
  Json statistics = Json::object();     ///< RunLock::statistics, but for pictures
  Json pictures = Json::object();       ///< statistics of reference pictures, by scanner
  FilesByKind skipped_files = {};       ///< in folders, by kind

  static constexpr auto Fields() {
    return AsObject(Field("images", &FoundImages::images).Required(),
                    Field("statistics", &FoundImages::statistics),
                    Field("pictures", &FoundImages::pictures),
                    Field("skipped_files", &FoundImages::skipped_files));
  }
};

}  // namespace patchbay::plan
