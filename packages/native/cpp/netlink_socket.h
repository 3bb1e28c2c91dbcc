// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace switchyard {

// Options of a netlink socket. Sizes are bytes; 0 leaves the kernel's default.
struct NetlinkOptions {
  int protocol = 0;                        // NETLINK_NETFILTER or NETLINK_ROUTE
  std::string netns;                       // path of a namespace file; empty: the caller's own
  std::vector<uint32_t> groups;            // multicast groups to join
  std::vector<uint32_t> ignored_port_ids;  // notifications caused by these sockets never arrive
  int send_buffer = 0;
  int receive_buffer = 0;
};

// Outcome of a call that may fail: `error` is an errno, 0 on success, `syscall` names what failed.
struct OpenResult {
  int fd = -1;
  uint32_t port_id = 0;
  int error = 0;
  const char* syscall = "";
};

// Opens a non-blocking netlink socket with extended acknowledgements. It stays in the namespace it is
// opened in. The calling thread's own namespace never changes.
OpenResult OpenNetlinkSocket(const NetlinkOptions& options);

// Opens a non-blocking socket in the namespace with this path. The calling thread's own never changes.
OpenResult OpenSocketIn(const std::string& netns, int family, int type);

// Makes a network namespace that lives as long as `fd`, or a socket in it, is open. The calling thread's own never changes.
OpenResult MakeNetworkNamespace();

// Sends one datagram to the kernel. Returns 0 or a negative errno; EINTR is retried.
int64_t SendToKernel(int fd, const void* data, size_t length);

// Receives the next datagram. Returns its length or a negative errno: -EAGAIN when there is none, -EMSGSIZE
// when it did not fit (it is lost then). Datagrams from other senders than the kernel are skipped.
int64_t ReceiveFromKernel(int fd, void* buffer, size_t capacity);

}  // namespace switchyard
