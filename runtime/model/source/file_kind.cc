#include "runtime/model/source/file_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"

namespace patchbay {
namespace {

constexpr std::string_view kOther = "other";
constexpr std::array<std::string_view, 11> kSlides = {
    ".bif", ".btf", ".mrxs", ".ndpi", ".scn", ".svs", ".svslide", ".tif", ".tiff", ".vms", ".vmu"};
/// Slides of formats that are not read.
constexpr std::array<std::string_view, 8> kUnreadSlides = {".czi", ".isyntax", ".lif", ".lsm",
                                                           ".oir", ".qptiff",  ".vsi", ".zvi"};
/// Well known, and no slides that can be read.
constexpr std::array<std::string_view, 28> kOthers = {
    ".bmp",     ".csv", ".czi",  ".dcm", ".doc",  ".docx", ".geojson", ".gz",   ".html", ".ini",
    ".isyntax", ".jp2", ".jpeg", ".jpg", ".json", ".mha",  ".nii",     ".nrrd", ".pdf",  ".png",
    ".tar",     ".tsv", ".txt",  ".xls", ".xlsx", ".xml",  ".yaml",    ".zip"};

constexpr std::array<std::string_view, 5> kTables = {"manifest.csv", "failed.csv", "verdicts.csv",
                                                     "cohort.csv", "positions.csv"};

constexpr std::array<std::string_view, 6> kNoFiles = {"dangling link", "device", "FIFO",
                                                      "link",          "mask",   "socket"};

bool IsNoFile(std::string_view kind) {
  return std::find(kNoFiles.begin(), kNoFiles.end(), kind) != kNoFiles.end();
}

}  // namespace

std::string ExtensionOf(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

bool NamesSlide(const std::string& path) {
  return std::find(kSlides.begin(), kSlides.end(), ExtensionOf(path)) != kSlides.end();
}

bool NamesUnreadSlide(const std::string& path) {
  return std::find(kUnreadSlides.begin(), kUnreadSlides.end(), ExtensionOf(path)) !=
         kUnreadSlides.end();
}

std::string KindOfFile(const std::string& path) {
  const std::string extension = ExtensionOf(path);
  const bool is_known =
      NamesSlide(path) || std::find(kOthers.begin(), kOthers.end(), extension) != kOthers.end();
  return is_known ? extension.substr(1) : std::string(kOther);
}

std::string TextOf(const FilesByKind& files) {
  std::string text;
  for (const auto& [kind, count] : files) {
    if (count <= 0) continue;
    if (!text.empty()) text += ", ";
    const bool is_other = kind == kOther;
    text += IsNoFile(kind) ? Counted(static_cast<std::uint64_t>(count), kind)
                           : StrCat(count, is_other ? " " : " .", kind);
  }
  return text;
}

bool IsTableOfJobs(std::string_view name) {
  return std::find(kTables.begin(), kTables.end(), name) != kTables.end();
}

void LeaveOut(const std::vector<std::string>& paths, FilesByKind& files) {
  for (const std::string& path : paths) {
    const auto kind = files.find(KindOfFile(path));
    if (kind != files.end() && --kind->second == 0) files.erase(kind);
  }
}

}  // namespace patchbay
