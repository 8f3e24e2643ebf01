// The file formats of `patchbay labels export`: one table, from which the command's help, the
// checks of its options, the refusals and the page (configs/export.md) come.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace patchbay {

struct LabelFormat {
  std::string_view name;                  ///< for --to
  std::vector<std::string_view> endings;  ///< endings of files, in lower case; the usual one first
  bool of_slides = false, of_volumes = false;
  std::vector<std::string_view> options = {};  ///< flags that only some formats take
  std::string_view content = {};
  bool needs_source = false;  ///< --source: the series that the store was made from
};

const std::vector<LabelFormat>& LabelFormats();

/// nullptr for a name that --to does not take.
const LabelFormat* FindLabelFormat(std::string_view name);
/// The format of the longest ending that the file's name has; nullptr where it has none of them.
const LabelFormat* LabelFormatOfFile(const std::string& path);

/// "geojson or tiff": for slides, or for volumes.
std::string LabelFormatsOf(bool is_volume);
/// ".tif, .tiff or .btf"
std::string EndingsOf(const LabelFormat& format);

/// A line for each format, for the command's help.
std::string ListLabelFormats();
/// A Markdown table with a row for each format.
std::string DocumentLabelFormats();

}  // namespace patchbay
