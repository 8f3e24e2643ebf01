// Kinds of files by the ends of their names, for commands that say which files they skip.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay {

/// ".svs" of "a/B.SVS": the end of a name in lower case, "" where it has none.
std::string ExtensionOf(const std::string& path);

/// Whether the name ends as those of slides do that can be read.
bool NamesSlide(const std::string& path);

/// Whether the name has the extension of a slide format that is not supported.
bool NamesUnreadSlide(const std::string& path);

/// "jpg", "xml"; "other" for what is not well known, since a name's end may say more than its kind.
std::string KindOfFile(const std::string& path);

/// Files by KindOfFile; what is no file as "FIFO", "socket", "device", "link" (to one that counts
/// already), "dangling link"; and "mask", of an image beside it.
using FilesByKind = std::map<std::string, std::int64_t>;

/// "2 links, 3 .dcm, 1 other"; "" when there is none.
std::string TextOf(const FilesByKind& files);

/// Whether jobs write a table of that name beside their stores.
bool IsTableOfJobs(std::string_view name);

/// Takes the kinds of these files off, as far as they were counted.
void LeaveOut(const std::vector<std::string>& paths, FilesByKind& files);

}  // namespace patchbay
