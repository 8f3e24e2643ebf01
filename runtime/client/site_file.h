// A site: decisions of an operator for every home and node on the machines, in one file.
#pragma once

#include <optional>
#include <string>

#include "runtime/client/environment.h"
#include "runtime/core/status.h"
#include "runtime/os/file_sharing.h"

namespace patchbay::client {

struct Site {
  std::string file;                 ///< "" without a site
  std::string pseudonym_key;        ///< path of the key behind the names of stores, or ""
  std::string group;                ///< group of published files, or ""
  unsigned mode = 0;                ///< permissions of published files
  bool may_take_burned_in = false;  ///< `ingest --repair burned-in`
  /// Own functions of users that nodes run, as NodeSettings::functions; "" = none.
  std::string functions;
  int group_line = 0;  ///< line of `group`, for messages
};

/// Reads the site's file; an empty Site where there is none. InvalidArgument with file, line and
/// key for anything unknown or malformed; configs/site.md lists the keys.
StatusOr<Site> ReadSite(const Environment& environment);

/// Rights of the files that this process's workers publish; nothing where the site does not say.
/// The error of a group that is not there, or not of this process, names file, line and key.
StatusOr<std::optional<FileSharing>> SharingOf(const Site& site);

}  // namespace patchbay::client
