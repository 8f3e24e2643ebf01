// Open images, kept while they are used: opening a slide parses its directories and tile tables.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/core/lru_cache.h"
#include "runtime/core/status.h"
#include "runtime/model/source/slide_choice.h"
#include "runtime/os/folders.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// Opens an image; OpenChosenSlide outside tests.
using ImageOpener = std::function<StatusOr<std::unique_ptr<ImageSource>>(
    const Folders& allowed, const std::string& path, const SlideChoice& choice)>;

/// Checks that the file at the path is the wanted one; `opened` is null before it is opened.
using ImageCheck = std::function<Status(ImageSource* opened)>;

/// The state of the most recently used open images: layouts, tile tables, lists of shards, all in
/// compact form. Their descriptors and shard indexes are in ReadCaches. Thread-safe. A dropped
/// image lives as long as it has other owners.
class ImageCache {
 public:
  /// Keeps as many images as fit into `bytes_max`, but never fewer than kImagesMin. Larger means
  /// fewer images opened again, and more memory.
  ImageCache(std::size_t bytes_max, ImageOpener open)
      : open_(std::move(open)), images_(bytes_max, kImagesMin) {}

  static constexpr std::size_t kImagesMin = 16;

  /// The image at a canonical path. Opens without holding the lock. `stamp` distinguishes contents
  /// of one path: an image opened under another stamp is not returned. It must therefore also name
  /// the folders of `allowed`. `check`, if given, must hold before the image is opened (null) and
  /// after; an image that is open already is not checked again. `stamp` also tells parts of a slide
  /// apart.
  StatusOr<std::shared_ptr<const ImageSource>> Get(const Folders& allowed, const std::string& path,
                                                   const std::string& stamp = {},
                                                   const ImageCheck& check = {},
                                                   const SlideChoice& choice = {});

  /// Drops `image`, so that the next Get opens the file anew. Does nothing if another Get has
  /// replaced it.
  void Forget(const std::string& path, const std::string& stamp, const ImageSource* image);

  std::size_t size() const;
  /// Bytes of all cached images.
  std::size_t bytes() const;

 private:
  using Images = LruCache<std::string, std::shared_ptr<const ImageSource>>;

  std::shared_ptr<const ImageSource> Find(const std::string& key);
  std::shared_ptr<const ImageSource> Keep(const std::string& key,
                                          std::shared_ptr<const ImageSource> image);

  const ImageOpener open_;
  mutable std::mutex mu_;
  Images images_;  // guarded by mu_; by stamp, a zero byte, path
};

}  // namespace patchbay::workers
