// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
//
// Programs for the tests of loading, attaching and running.
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u8 small = 1;
const volatile __u32 answer = 2;
const volatile __u64 large = 3;

// Element 0: calls of connect; 1: packets seen by `first`; 2: packets seen by `second`.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(key_size, 4);
  __uint(value_size, 8);
  __uint(max_entries, 4);
  __uint(map_flags, BPF_F_MMAPABLE);
} counts SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(key_size, 4);
  __uint(value_size, 8);
  __uint(max_entries, 16);
  __uint(map_flags, BPF_F_NO_PREALLOC);
} unused SEC(".maps");

static __always_inline void count(__u32 what) {
  __u64 *counter = bpf_map_lookup_elem(&counts, &what);
  if (counter) __sync_fetch_and_add(counter, 1);
}

SEC("cgroup/connect4")
int count_connect(struct bpf_sock_addr *context) {
  (void)context;
  count(0);
  bpf_map_lookup_elem(&unused, &(__u32){0});
  return 1;
}

SEC("cgroup/connect4")
int refuse_connect(struct bpf_sock_addr *context) {
  (void)context;
  bpf_set_retval(-111);
  return 0;
}

SEC("tc")
int first(struct __sk_buff *packet) {
  (void)packet;
  count(1);
  return -1;
}

SEC("tc")
int second(struct __sk_buff *packet) {
  (void)packet;
  count(2);
  return -1;
}

// Writes the constants behind the Ethernet header, and the mark plus one into the context.
SEC("tc")
int constants(struct __sk_buff *packet) {
  struct {
    __u64 large;
    __u32 answer;
    __u8 small;
    __u8 rest[3];
  } record = {.large = large, .answer = answer, .small = small};
  bpf_skb_store_bytes(packet, 14, &record, sizeof(record), 0);
  packet->mark = packet->mark + 1;
  return 7;
}

// Refused by the verifier: reads where nothing was promised to be.
SEC("tc")
int broken(struct __sk_buff *packet) {
  __u8 *data = (__u8 *)(long)packet->data;
  return data[100];
}

struct seq_file;
struct bpf_iter_meta {
  struct seq_file *seq;
} __attribute__((preserve_access_index));
struct udp_sock;
struct bpf_iter__udp {
  struct bpf_iter_meta *meta;
  struct udp_sock *udp_sk;
} __attribute__((preserve_access_index));

SEC("iter/udp")
int udp_sockets(struct bpf_iter__udp *context) {
  if (context->udp_sk) bpf_seq_write(context->meta->seq, "socket\n", 7);
  return 0;
}
