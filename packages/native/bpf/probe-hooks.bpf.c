// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
//
// One program for each kernel ability that the probe tries. Each is loaded alone, so that a refusal concerns one ability. None is
// ever attached.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// Socket hooks need at least the network namespace of a socket (Linux 5.7).
SEC("cgroup/connect4")
int hooks(struct bpf_sock_addr *context) {
  return bpf_get_netns_cookie(context) == 0 ? 0 : 1;
}

// Showing the address of a frontend as the peer's (Linux 5.8).
SEC("cgroup/getpeername4")
int getpeername(struct bpf_sock_addr *context) {
  (void)context;
  return 1;
}

// An answer other than EPERM for a refused connect (Linux 5.18).
SEC("cgroup/connect4")
int set_retval(struct bpf_sock_addr *context) {
  (void)context;
  bpf_set_retval(-111);
  return 0;
}

// Programs at network interfaces.
SEC("tc")
int packets(struct __sk_buff *packet) {
  (void)packet;
  return -1;
}
