// Open images, kept while they are used: opening a slide parses its directories and tile tables.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/base/status.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// Opens an image; OpenImage outside tests.
using ImageOpener = std::function<StatusOr<std::unique_ptr<ImageSource>>(const std::string& path)>;

/// The most recently used images, open. Thread-safe. An image that was dropped stays open for
/// those who still hold it.
class ImageCache {
 public:
  /// Larger `open_images_max` means fewer reopened slides, and more memory and descriptors.
  ImageCache(std::size_t open_images_max, ImageOpener open)
      : open_images_max_(open_images_max), open_(std::move(open)) {}

  /// The image at a canonical path. Opens without holding the lock. `stamp` tells contents of one
  /// path apart: what was opened under another one is not returned. `check`, if given, must hold
  /// before and after the image is opened; an image that is open already is not checked again.
  StatusOr<std::shared_ptr<const ImageSource>> Get(const std::string& path,
                                                   const std::string& stamp = {},
                                                   const std::function<Status()>& check = {});

  std::size_t size() const;

 private:
  /// Key: stamp, a zero byte, path.
  using Entry = std::pair<std::string, std::shared_ptr<const ImageSource>>;

  std::shared_ptr<const ImageSource> Find(const std::string& key);
  std::shared_ptr<const ImageSource> Keep(const std::string& key,
                                          std::shared_ptr<const ImageSource> image);

  const std::size_t open_images_max_;
  const ImageOpener open_;
  mutable std::mutex mu_;
  std::list<Entry> entries_;  // guarded by mu_; the most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;  // guarded by mu_
};

}  // namespace patchbay::workers
