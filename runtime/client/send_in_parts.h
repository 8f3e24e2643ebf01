// Long lists to the scheduler, in messages of bounded size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/wire/control/session.h"

namespace patchbay::client {

inline constexpr std::size_t kMostItemsPerMessage = 4096;

/// Sends `items` as that list of copies of `message`.
template <typename Message, typename Item>
void SendInParts(control::Session& session, Message message, std::vector<Item> Message::*list,
                 const std::vector<Item>& items) {
  for (std::size_t i = 0; i < items.size(); i += kMostItemsPerMessage) {
    const auto end = std::min(items.size(), i + kMostItemsPerMessage);
    (message.*list)
        .assign(items.begin() + static_cast<std::ptrdiff_t>(i),
                items.begin() + static_cast<std::ptrdiff_t>(end));
    // Lost with the connection, it is told again by the next AttachTrainer.
    session.Tell(message).IgnoreError();
  }
}

}  // namespace patchbay::client
