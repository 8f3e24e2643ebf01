#include "runtime/model/jobs/label_formats.h"

#include <algorithm>
#include <cctype>

#include "runtime/core/strings.h"

namespace patchbay {
namespace {

std::string Joined(const std::vector<std::string_view>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += StrCat(i == 0 ? "" : i + 1 == words.size() ? last : ", ", words[i]);
  }
  return text;
}

std::string_view KindOf(const LabelFormat& format) {
  return format.of_slides ? "slides" : "volumes";
}

}  // namespace

const std::vector<LabelFormat>& LabelFormats() {
  static const std::vector<LabelFormat> formats = {
      {.name = "geojson",
       .endings = {".geojson", ".json"},
       .of_slides = true,
       .options = {"--origin", "--smooth", "--min-area"},
       .content = "outlines for QuPath"},
      {.name = "tiff",
       .endings = {".tif", ".tiff", ".btf"},
       .of_slides = true,
       .options = {"--level"},
       .content = "a mask of the classes' values"},
      {.name = "nifti",
       .endings = {".nii.gz", ".nii"},
       .of_volumes = true,
       .content = "the classes' values on the source's grid"},
      {.name = "nrrd",
       .endings = {".nrrd"},
       .of_volumes = true,
       .content = "the classes' values on the source's grid"},
      {.name = "seg",
       .endings = {".dcm"},
       .of_volumes = true,
       .content = "DICOM SEG of the source's series",
       .needs_source = true},
  };
  return formats;
}

const LabelFormat* FindLabelFormat(std::string_view name) {
  for (const LabelFormat& format : LabelFormats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

const LabelFormat* LabelFormatOfFile(const std::string& path) {
  std::string name = path;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const LabelFormat* found = nullptr;
  std::size_t longest = 0;
  for (const LabelFormat& format : LabelFormats()) {
    for (const std::string_view ending : format.endings) {
      if (ending.size() <= longest || !name.ends_with(ending)) continue;
      longest = ending.size();
      found = &format;
    }
  }
  return found;
}

std::string LabelFormatsOf(bool is_volume) {
  std::vector<std::string_view> names;
  for (const LabelFormat& format : LabelFormats()) {
    if (is_volume ? format.of_volumes : format.of_slides) names.push_back(format.name);
  }
  return Joined(names, " or ");
}

std::string EndingsOf(const LabelFormat& format) { return Joined(format.endings, " or "); }

std::string ListLabelFormats() {
  std::string text;
  for (const LabelFormat& format : LabelFormats()) {
    std::string name(format.name);
    name.resize(8, ' ');
    text += StrCat("  ", name, " of ", KindOf(format), ": ", format.content, " (",
                   Joined(format.endings, ", "), ")\n");
  }
  return text;
}

std::string DocumentLabelFormats() {
  std::string text =
      "| `--to` | endings | of | content | its options |\n| --- | --- | --- | --- | --- |\n";
  for (const LabelFormat& format : LabelFormats()) {
    std::string options;
    for (const std::string_view option : format.options) {
      options += StrCat(options.empty() ? "`" : ", `", option, "`");
    }
    if (format.needs_source) options += StrCat(options.empty() ? "" : ", ", "`--source`");
    text += StrCat("| ", format.name, " | ", Joined(format.endings, ", "), " | ", KindOf(format),
                   " | ", format.content, " | ", options, " |\n");
  }
  return text;
}

}  // namespace patchbay
