#include "workers/jobs/spectra/spectra_publish.h"

#include <array>
#include <bit>
#include <cstring>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/json/described.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/spectra/figures.h"
#include "workers/jobs/staged/own_table.h"
#include "workers/plots/spectra_plots.h"

namespace patchbay::workers {
namespace {

static_assert(std::endian::native == std::endian::little, "NumPy files are written as they lie");

constexpr const char* kDocument = "spectra.json";
constexpr const char* kManifest = "manifest.csv";
constexpr const char* kCoefficients = "coefficients";
constexpr std::array kPlots = {"histogram.png", "radial.png", "cohort.png"};
constexpr std::array kNames = {"spectra.json", "spectra.csv", "manifest.csv", "histogram.png",
                               "radial.png",   "cohort.png",  "coefficients"};
constexpr std::size_t kMaxManifestBytes = std::size_t{256} << 20;
constexpr std::array kSpectraChannels = {"red", "green", "blue"};

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

bool HasDefinition(const Folders& allowed, const std::string& path,
                   const results::SpectraDefinition& definition) {
  const auto text = ReadFile(allowed, path, results::kMaxSpectraBytes);
  if (!text.ok()) return false;
  const auto document = ParseJson(*text, kDocument, results::kMaxSpectraBytes);
  return document.ok() && document->is_object() &&
         document->value("definition", Json()) == JsonOf(definition);
}

std::string ManifestCsv(const StagedManifest& manifest, const std::vector<SpectraSource>& sources) {
  std::string text = CsvRow({"index", "id", "path", "digest"});
  for (std::size_t i = 0; i < sources.size(); ++i) {
    text += CsvRow({StrCat(i), sources[i].id, CsvField(manifest.sources[i]), sources[i].digest});
  }
  return text;
}

/// The plots, and none of an earlier run that would not belong to them.
StatusOr<std::vector<std::string>> PublishPlots(TaskContext& context, const StagedFolders& folders,
                                                const results::SpectraDocument& document) {
  PB_ASSIGN_OR_RETURN(const std::vector<PlotFile> plots, DrawSpectraPlots(document));
  for (const char* name : kPlots) {
    RemoveFile(context.allowed, folders.InOut(name)).IgnoreError();  // writing names what it is
  }
  std::vector<std::string> names;
  for (const PlotFile& plot : plots) {
    PB_RETURN_IF_ERROR(
        WriteFileDurably(context.allowed, folders.InOut(plot.name), AsBytes(plot.png)));
    names.push_back(plot.name);
    context.AddProgress();
  }
  return names;
}

}  // namespace

Status CheckOutIsFree(const SpectraTask& job) {
  const StagedFolders& folders = job.folders;
  if (Exists(folders.allowed, folders.InJob(kPublishingFile), false)) return absl::OkStatus();
  PB_RETURN_IF_ERROR(CheckOwnTable(folders, "failed.csv", kFailedHeader));
  for (const char* name : kNames) {
    if (!Exists(folders.allowed, folders.InOut(name), false)) continue;
    if (HasDefinition(folders.allowed, folders.InOut(kDocument), job.settings.Definition()) &&
        ListsSources(folders.allowed, folders.InOut(kManifest), job.manifest.sources)) {
      return absl::OkStatus();
    }
    return ErrorAbout(
        absl::StatusCode::kAlreadyExists, "spectra", folders.InOut(name),
        "exists and was not made from these sources with these settings; give another name");
  }
  return absl::OkStatus();
}

StatusOr<std::vector<std::string>> PublishSpectra(TaskContext& context, const SpectraTask& job,
                                                  const std::vector<SpectraSource>& sources,
                                                  const results::SpectraDocument& document) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> plots,
                      PublishPlots(context, job.folders, document));
  const auto write = [&](const char* name, const std::string& text, unsigned mode) {
    return WriteFileDurably(context.allowed, job.folders.InOut(name), AsBytes(text), mode);
  };
  PB_RETURN_IF_ERROR(write("spectra.csv", SpectraCsv(document.slides), 0644));
  PB_RETURN_IF_ERROR(write(kManifest, ManifestCsv(job.manifest, sources), 0600));
  PB_RETURN_IF_ERROR(write(kDocument, DumpJson(JsonOf(document)) + "\n", 0644));
  for (const char* name : kNames) {
    PB_RETURN_IF_ERROR(ShareFiles(context.allowed, job.folders.InOut(name), context.sharing));
  }
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

Status PublishCoefficients(TaskContext& context, const SpectraTask& job, SlideSpectra& slide) {
  if (slide.coefficients.size() != slide.sums.size()) {
    return Internal("spectra: slide has no coefficients");
  }
  const std::string folder = job.folders.InOut(kCoefficients);
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, folder));
  for (std::size_t i = 0; i < slide.sums.size(); ++i) {
    PB_ASSIGN_OR_RETURN(const std::string bytes,
                        LoadSpectraArray(job.folders, slide.coefficients[i]));
    PB_RETURN_IF_ERROR(ops::DecodeCoefficients(bytes, slide.sums[i]));
    const std::string channel = slide.sums.size() > 1 ? StrCat(".", kSpectraChannels[i]) : "";
    PB_RETURN_IF_ERROR(WriteFileDurably(context.allowed,
                                        StrCat(folder, "/", slide.id, channel, ".npy"),
                                        AsBytes(CoefficientsNpy(slide.sums[i], job.settings))));
    context.AddProgress();
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
