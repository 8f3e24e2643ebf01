#include "workers/agent/service_notice.h"

#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace patchbay::workers {

void NotifyService(const std::string& address, std::string_view state) {
  sockaddr_un to{};
  if (address.empty() || address.size() >= sizeof(to.sun_path)) return;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address.data(), address.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  (void)!sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                reinterpret_cast<const sockaddr*>(&to), length);
  close(fd);
}

}  // namespace patchbay::workers
