// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
//
// Ending UDP sockets by a program that the kernel calls for each (Linux 6.5). Loaded to find out whether the kernel
// takes it; never run.
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// The kernel compares types by kind only; what is in them does not matter here.
struct sock_common {
  __u8 unused;
} __attribute__((preserve_access_index));
struct udp_sock {
  __u8 unused;
} __attribute__((preserve_access_index));
struct bpf_iter_meta;
struct bpf_iter__udp {
  struct bpf_iter_meta *meta;
  struct udp_sock *udp_sk;
} __attribute__((preserve_access_index));

extern int bpf_sock_destroy(struct sock_common *) __ksym;

SEC("iter/udp")
int sock_destroy(struct bpf_iter__udp *context) {
  struct udp_sock *socket = context->udp_sk;
  if (socket) bpf_sock_destroy((struct sock_common *)socket);
  return 0;
}
