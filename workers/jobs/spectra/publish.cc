#include "workers/jobs/spectra/publish.h"

#include <array>
#include <bit>
#include <cstring>
#include <filesystem>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "workers/jobs/spectra/figures.h"
#include "workers/jobs/task/own_table.h"
#include "workers/plots/spectra_plots.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "NumPy files are written as they lie");

constexpr const char* kDocument = "spectra.json";
constexpr const char* kManifest = "manifest.csv";
constexpr const char* kCoefficients = "coefficients";
constexpr std::array kPlots = {"histogram.png", "radial.png", "cohort.png"};
constexpr std::array kNames = {"spectra.json", "spectra.csv", "manifest.csv", "histogram.png",
                               "radial.png",   "cohort.png",  "coefficients"};
constexpr std::size_t kMaxDocumentBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxManifestBytes = std::size_t{256} << 20;
constexpr std::array kChannelNames = {"red", "green", "blue"};

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

/// Whether a manifest.csv lists these sources and no others.
bool ListsSources(const Folders& allowed, const std::string& path,
                  const std::vector<std::string>& sources) {
  const auto text = ReadFile(allowed, path, kMaxManifestBytes);
  if (!text.ok()) return false;
  const auto rows = ParseCsv(*text);
  if (rows.size() != sources.size() + 1) return false;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::vector<std::string>& row = rows[i + 1];
    if (row.size() != 4 || row[0] != StrCat(i) || row[2] != sources[i]) return false;
  }
  return true;
}

bool HasDefinition(const Folders& allowed, const std::string& path, const Json& definition) {
  const auto text = ReadFile(allowed, path, kMaxDocumentBytes);
  if (!text.ok()) return false;
  const auto document = ParseJson(*text, kDocument, kMaxDocumentBytes);
  return document.ok() && document->is_object() &&
         document->value("definition", Json()) == definition;
}

std::string ManifestCsv(const SpectraManifest& manifest,
                        const std::vector<SpectraSource>& sources) {
  std::string text = CsvRow({"index", "id", "path", "digest"});
  for (std::size_t i = 0; i < sources.size(); ++i) {
    text += CsvRow({StrCat(i), sources[i].id, CsvField(manifest.sources[i]), sources[i].digest});
  }
  return text;
}

/// The plots, and none of an earlier run that would not belong to them.
StatusOr<std::vector<std::string>> PublishPlots(TaskContext& context, const SpectraFolders& folders,
                                                const Json& document) {
  PB_ASSIGN_OR_RETURN(const std::vector<PlotFile> plots, DrawSpectraPlots(document));
  for (const char* name : kPlots) {
    RemoveFile(context.allowed, StrCat(folders.out, "/", name))
        .IgnoreError();  // writing names what it is
  }
  std::vector<std::string> names;
  for (const PlotFile& plot : plots) {
    PB_RETURN_IF_ERROR(
        WriteFileDurably(context.allowed, StrCat(folders.out, "/", plot.name), AsBytes(plot.png)));
    names.push_back(plot.name);
    context.AddProgress();
  }
  return names;
}

}  // namespace

Status CheckOutIsFree(const SpectraFolders& folders, const SpectraManifest& manifest) {
  if (Exists(folders.PublishingFile())) return absl::OkStatus();
  const auto in_out = [&](const char* name) { return StrCat(folders.out, "/", name); };
  PB_RETURN_IF_ERROR(
      CheckOwnTable(folders.allowed, "spectra", in_out("failed.csv"), kFailedHeader));
  for (const char* name : kNames) {
    if (!Exists(in_out(name))) continue;
    if (HasDefinition(folders.allowed, in_out(kDocument), manifest.settings.Definition()) &&
        ListsSources(folders.allowed, in_out(kManifest), manifest.sources)) {
      return absl::OkStatus();
    }
    return FileError(
        absl::StatusCode::kAlreadyExists, "spectra", in_out(name),
        "exists and was not made from these sources with these settings; give another name");
  }
  return absl::OkStatus();
}

StatusOr<std::vector<std::string>> PublishSpectra(TaskContext& context,
                                                  const SpectraFolders& folders,
                                                  const SpectraManifest& manifest,
                                                  const std::vector<SpectraSource>& sources,
                                                  const Json& document) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> plots,
                      PublishPlots(context, folders, document));
  const auto in_out = [&](const char* name) { return StrCat(folders.out, "/", name); };
  PB_RETURN_IF_ERROR(
      WriteFileDurably(context.allowed, in_out("spectra.csv"), AsBytes(SpectraCsv(document))));
  PB_RETURN_IF_ERROR(WriteFileDurably(context.allowed, in_out(kManifest),
                                      AsBytes(ManifestCsv(manifest, sources)), 0600));
  PB_RETURN_IF_ERROR(
      WriteFileDurably(context.allowed, in_out(kDocument), AsBytes(DumpJson(document) + "\n")));
  return plots;
}

std::string CoefficientsNpy(const ops::SpectralSums& sums, const plan::SpectralOptions& options) {
  std::string header = StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", options.frame,
                              ", ", options.frame / 2 + 1, "), }");
  constexpr std::size_t kPrefixBytes = 10, kAlignment = 64;
  header.append(kAlignment - (kPrefixBytes + header.size() + 1) % kAlignment, ' ');
  header.push_back('\n');
  std::string npy("\x93NUMPY\x01\x00", 8);
  npy.push_back(static_cast<char>(header.size() & 0xFF));
  npy.push_back(static_cast<char>(header.size() >> 8));
  npy += header;
  for (const std::uint64_t q : sums.coefficient_q) {
    const auto mean = static_cast<float>(static_cast<double>(q) / ops::kSpectralSteps /
                                         static_cast<double>(sums.frames));
    char bytes[sizeof mean];
    std::memcpy(bytes, &mean, sizeof mean);
    npy.append(bytes, sizeof mean);
  }
  return npy;
}

Status PublishCoefficients(TaskContext& context, const SpectraFolders& folders,
                           const SpectraManifest& manifest, SlideSpectra& slide) {
  if (slide.coefficients.size() != slide.sums.size()) {
    return absl::InternalError("spectra: a slide without its coefficients");
  }
  const std::string folder = StrCat(folders.out, "/", kCoefficients);
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, folder));
  for (std::size_t i = 0; i < slide.sums.size(); ++i) {
    PB_ASSIGN_OR_RETURN(const std::string bytes, LoadSpectraArray(folders, slide.coefficients[i]));
    PB_RETURN_IF_ERROR(ops::DecodeCoefficients(bytes, slide.sums[i]));
    const std::string channel = slide.sums.size() > 1 ? StrCat(".", kChannelNames[i]) : "";
    PB_RETURN_IF_ERROR(
        WriteFileDurably(context.allowed, StrCat(folder, "/", slide.id, channel, ".npy"),
                         AsBytes(CoefficientsNpy(slide.sums[i], manifest.settings.spectral))));
    context.AddProgress();
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
