// DICOM whole-slide images: the instances of a series, each a level or a part of one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/source/slide_choice.h"
#include "runtime/os/folders.h"
#include "workers/sources/dicom_instance.h"  // wide: parts of its interface
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// The most names in a folder of DICOM slides: all are looked at for instances of the series.
inline constexpr std::size_t kMaxDicomFolderNames = 4096;

/// Reads the fields by which a file is known as part of a slide; nothing for one that is no VL
/// Whole Slide Microscopy image, or cannot be opened. Reads the first elements of the file alone.
std::optional<DicomSlideName> DicomSlideNameOf(const Folders& allowed, const std::string& path);

/// The files of the levels of the slide that `path` is a level of: those of its series in its
/// folder, sorted; `path` alone where it is no level of a DICOM slide. ResourceExhausted for a
/// folder of more than kMaxDicomFolderNames; the error of a file that cannot be opened.
StatusOr<std::vector<std::string>> DicomSlideFiles(const Folders& allowed, const std::string& path);

/// Opens a slide by any of its levels, kind "dicom-wsi". Unimplemented for other DICOM files, for
/// labels, overviews and thumbnails, for layouts that are not read, and for several focal planes,
/// or optical paths of colours, of which none is chosen; InvalidArgument for what contradicts
/// itself, within an instance or between two, and for a choice that the largest level lacks. Other
/// levels that lack it are left out.
StatusOr<std::unique_ptr<ImageSource>> OpenDicomSlide(const Folders& allowed,
                                                      const std::string& path,
                                                      const ReadCaches& caches,
                                                      const SlideChoice& choice = {});

/// OpenImage, or with a choice OpenDicomSlide. InvalidArgument for a choice of other images.
StatusOr<std::unique_ptr<ImageSource>> OpenChosenSlide(
    const Folders& allowed, const std::string& path, const SlideChoice& choice,
    const ReadCaches& caches = ReadCaches::ForOneImage());

}  // namespace patchbay::workers
