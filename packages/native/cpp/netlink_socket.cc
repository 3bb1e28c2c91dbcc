// SPDX-License-Identifier: Apache-2.0
#include "netlink_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

namespace switchyard {
namespace {

OpenResult Fail(int fd, const char* syscall) {
  OpenResult result;
  result.error = errno;
  result.syscall = syscall;
  if (fd >= 0) close(fd);
  return result;
}

// The FORCE variants pass the system-wide limits and need CAP_NET_ADMIN in the initial user namespace.
bool SetBuffer(int fd, int forced, int plain, int bytes) {
  if (bytes == 0) return true;
  return setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)) == 0 ||
         setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof(bytes)) == 0;
}

// A classic BPF program that drops messages whose nlmsg_pid is in the list. One notification batch has one cause, so
// its first header speaks for all.
bool IgnorePortIds(int fd, const std::vector<uint32_t>& port_ids) {
  if (port_ids.empty()) return true;
  constexpr uint32_t kPortIdOffset = offsetof(nlmsghdr, nlmsg_pid);
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPortIdOffset));
  for (uint32_t id : port_ids) {
    // BPF loads words in network order, netlink writes them in host order.
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(id), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0xffffffff));
  sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

OpenResult OpenHere(const NetlinkOptions& options) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, options.protocol);
  if (fd < 0) return Fail(fd, "socket");
  const int on = 1;
  if (setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)) != 0) return Fail(fd, "setsockopt NETLINK_EXT_ACK");
  if (setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)) != 0) return Fail(fd, "setsockopt NETLINK_CAP_ACK");
  if (!SetBuffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, options.send_buffer)) return Fail(fd, "setsockopt SO_SNDBUF");
  if (!SetBuffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, options.receive_buffer)) return Fail(fd, "setsockopt SO_RCVBUF");
  // Before the groups are joined, so that nothing unwanted is in the queue.
  if (!IgnorePortIds(fd, options.ignored_port_ids)) return Fail(fd, "setsockopt SO_ATTACH_FILTER");
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return Fail(fd, "bind");
  for (uint32_t group : options.groups) {
    if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) != 0) {
      return Fail(fd, "setsockopt NETLINK_ADD_MEMBERSHIP");
    }
  }
  socklen_t length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return Fail(fd, "getsockname");
  OpenResult result;
  result.fd = fd;
  result.port_id = address.nl_pid;
  return result;
}

// The file of the calling thread's own network namespace keeps the namespace alive.
OpenResult MakeNamespace() {
  if (unshare(CLONE_NEWNET) != 0) return Fail(-1, "unshare");
  OpenResult result;
  result.fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  return result.fd < 0 ? Fail(-1, "open") : result;
}

// A namespace change applies to one thread: a short-lived one, so that no other thread ever sees it.
template <typename Call>
OpenResult InThread(Call call) {
  OpenResult result;
  try {
    std::thread thread([&call, &result] { result = call(); });
    thread.join();
  } catch (const std::system_error& error) {
    result.error = error.code().value();
    result.syscall = "pthread_create";
  }
  return result;
}

template <typename Call>
OpenResult CallIn(const std::string& path, Call call) {
  const int netns = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (netns < 0) return Fail(-1, "open");
  const OpenResult result = setns(netns, CLONE_NEWNET) != 0 ? Fail(-1, "setns") : call();
  close(netns);
  return result;
}

OpenResult OpenSocket(int family, int type) {
  OpenResult result;
  result.fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return result.fd < 0 ? Fail(-1, "socket") : result;
}

}  // namespace

OpenResult OpenNetlinkSocket(const NetlinkOptions& options) {
  if (options.netns.empty()) return OpenHere(options);
  return InThread([&options] { return CallIn(options.netns, [&options] { return OpenHere(options); }); });
}

OpenResult OpenSocketIn(const std::string& netns, int family, int type) {
  return InThread([&] { return CallIn(netns, [=] { return OpenSocket(family, type); }); });
}

OpenResult MakeNetworkNamespace() { return InThread(MakeNamespace); }

int64_t SendToKernel(int fd, const void* data, size_t length) {
  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  for (;;) {
    const ssize_t sent = sendto(fd, data, length, 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof(kernel));
    if (sent >= 0) return 0;
    if (errno != EINTR) return -errno;
  }
}

int64_t ReceiveFromKernel(int fd, void* buffer, size_t capacity) {
  for (;;) {
    sockaddr_nl from = {};
    socklen_t from_length = sizeof(from);
    const ssize_t length =
        recvfrom(fd, buffer, capacity, MSG_TRUNC, reinterpret_cast<sockaddr*>(&from), &from_length);
    if (length < 0) {
      if (errno == EINTR) continue;
      return -errno;
    }
    if (from.nl_pid != 0) continue;
    return static_cast<size_t>(length) > capacity ? -EMSGSIZE : length;
  }
}

}  // namespace switchyard
