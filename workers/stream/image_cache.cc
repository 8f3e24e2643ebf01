#include "workers/stream/image_cache.h"

namespace patchbay::workers {

StatusOr<std::shared_ptr<const ImageSource>> ImageCache::Get(const std::string& path,
                                                             const std::string& stamp,
                                                             const std::function<Status()>& check) {
  const std::string key = stamp + '\0' + path;
  if (auto image = Find(key)) return image;
  if (check) PB_RETURN_IF_ERROR(check());
  PB_ASSIGN_OR_RETURN(std::shared_ptr<const ImageSource> opened, open_(path));
  if (check) PB_RETURN_IF_ERROR(check());
  return Keep(key, std::move(opened));
}

std::size_t ImageCache::size() const {
  const std::lock_guard lock(mu_);
  return entries_.size();
}

std::shared_ptr<const ImageSource> ImageCache::Find(const std::string& key) {
  const std::lock_guard lock(mu_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->second;
}

std::shared_ptr<const ImageSource> ImageCache::Keep(const std::string& key,
                                                    std::shared_ptr<const ImageSource> image) {
  const std::lock_guard lock(mu_);
  const auto it = by_key_.find(key);
  if (it != by_key_.end()) return it->second->second;
  entries_.emplace_front(key, std::move(image));
  by_key_[key] = entries_.begin();
  if (entries_.size() > open_images_max_) {
    by_key_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return entries_.front().second;
}

}  // namespace patchbay::workers
