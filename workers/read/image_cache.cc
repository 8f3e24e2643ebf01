#include "workers/read/image_cache.h"

namespace patchbay::workers {

StatusOr<std::shared_ptr<const ImageSource>> ImageCache::Get(const std::string& path) {
  if (auto image = Find(path)) return image;
  PB_ASSIGN_OR_RETURN(std::shared_ptr<const ImageSource> opened, open_(path));
  return Keep(path, std::move(opened));
}

std::size_t ImageCache::size() const {
  const std::lock_guard lock(mu_);
  return entries_.size();
}

std::shared_ptr<const ImageSource> ImageCache::Find(const std::string& path) {
  const std::lock_guard lock(mu_);
  const auto it = by_path_.find(path);
  if (it == by_path_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->second;
}

std::shared_ptr<const ImageSource> ImageCache::Keep(const std::string& path,
                                                    std::shared_ptr<const ImageSource> image) {
  const std::lock_guard lock(mu_);
  const auto it = by_path_.find(path);
  if (it != by_path_.end()) return it->second->second;
  entries_.emplace_front(path, std::move(image));
  by_path_[path] = entries_.begin();
  if (entries_.size() > open_images_max_) {
    by_path_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return entries_.front().second;
}

}  // namespace patchbay::workers
