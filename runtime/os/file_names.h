// Changes of the names in folders: durable only once the folder is synced (file.h).
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay {

// Like the functions of file.h, all of these stay in the folders that `allowed` names (folders.h).

/// rename(2): the new name's file, if there is one, is replaced.
Status RenameFile(const Folders& allowed, const std::string& from, const std::string& to);
/// The same, but AlreadyExists where the new name is taken, in one step where the file system can.
Status RenameUnlessTaken(const Folders& allowed, const std::string& from, const std::string& to);

/// mkdir: AlreadyExists when there is something of that name.
Status MakeDirectory(const Folders& allowed, const std::string& path, unsigned mode = 0755);

/// A file or an empty folder; OK when it is not there.
Status RemoveFile(const Folders& allowed, const std::string& path);
/// A folder and all it holds, or a file. Links in it are removed, not followed. OK when it is not
/// there.
Status RemoveTree(const Folders& allowed, const std::string& path);

}  // namespace patchbay
