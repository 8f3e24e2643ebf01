// Kinds of files by their extensions, for commands that report the files that they skip.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay {

/// ".svs" of "a/B.SVS": the end of a name in lower case, "" where it has none.
std::string ExtensionOf(const std::string& path);

/// Whether the name has the extension of a slide format that is supported.
bool NamesSlide(const std::string& path);

/// Whether the name has the extension of a slide format that is not supported.
bool NamesUnreadSlide(const std::string& path);

/// "jpg", "xml"; "other" for extensions that are not well known, since the end of a name may reveal
/// more than its kind.
std::string KindOfFile(const std::string& path);

/// Counts of files by KindOfFile. Other entries count as "FIFO", "socket", "device", "link" (to a
/// file that is counted already) or "dangling link", and a mask next to its image as "mask".
using FilesByKind = std::map<std::string, std::int64_t>;

/// "2 links, 3 .dcm, 1 other"; "" when there is none.
std::string TextOf(const FilesByKind& files);

/// Whether jobs write a table of that name next to their stores.
bool IsTableOfJobs(std::string_view name);

/// Takes the kinds of these files off, as far as they were counted.
void LeaveOut(const std::vector<std::string>& paths, FilesByKind& files);

}  // namespace patchbay
