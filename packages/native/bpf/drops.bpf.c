// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
//
// Counts the packets that the kernel frees with a reason (Linux 5.17): TCP, UDP and SCTP, by flow, reason and namespace. Of those
// without a reason it counts what certain functions free. It reads headers and never payload.
#include "drops.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// Reasons up to this number are none: SKB_DROP_REASON_NOT_SPECIFIED, whose number differs between kernels.
const volatile __u32 last_unspecified = 2;

// Functions whose drops without a reason count: ranges of addresses; unused ones are zero.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, SY_MAX_FUNCTIONS);
  __type(key, __u32);
  __type(value, struct sy_function);
} functions SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct sy_drop_key);
  __type(value, struct sy_drop_value);
} drops SEC(".maps");

// Packets counted, also those whose entry was evicted since.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} counted SEC(".maps");

static __always_inline bool is_of_function(__u64 location) {
  for (__u32 index = 0; index < SY_MAX_FUNCTIONS; index++) {
    const struct sy_function *function = bpf_map_lookup_elem(&functions, &index);
    if (function && location >= function->start && location < function->end) return true;
  }
  return false;
}

// TCP takes the device from a packet that has found its socket; its route still has one.
static __always_inline const struct net_device *device_of(const struct sk_buff *skb) {
  const struct net_device *device = BPF_CORE_READ(skb, dev);
  const struct dst_entry *route = (const void *)(BPF_CORE_READ(skb, _skb_refdst) & ~SY_WITHOUT_REFERENCE);
  return device || !route ? device : BPF_CORE_READ(route, dev);
}

static __always_inline __u64 netns_of(const struct sk_buff *skb) {
  const struct net_device *device = device_of(skb);
  if (device) return BPF_CORE_READ(device, nd_net.net, net_cookie);
  const struct sock *socket = BPF_CORE_READ(skb, sk);
  return socket ? BPF_CORE_READ(socket, __sk_common.skc_net.net, net_cookie) : 0;
}

static __always_inline void fill_v4(__u8 *to, __be32 address) {
  to[10] = 0xff;
  to[11] = 0xff;
  __builtin_memcpy(to + 12, &address, 4);
}

// Whether it is TCP, UDP or SCTP with its ports in this packet. Extension headers of IPv6 are not followed.
static __always_inline bool read_packet(const struct sk_buff *skb, struct sy_drop_key *key, struct sy_drop_value *value) {
  const unsigned char *network = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
  const unsigned char *transport;
  __u32 behind;  // bytes from the transport header to the end of the packet
  __be16 ports[2];
  __u8 offset_and_flags[2];
  __u8 first;
  if (bpf_probe_read_kernel(&first, 1, network)) return false;
  if (first >> 4 == 4) {
    struct sy_ipv4 ip;
    bpf_probe_read_kernel(&ip, sizeof(ip), network);
    if (ip.fragment & bpf_htons(0x1fff)) return false;
    key->protocol = ip.protocol;
    key->hops = ip.ttl;
    fill_v4(key->source, ip.source);
    fill_v4(key->destination, ip.destination);
    transport = network + (first & 15) * 4;
    behind = bpf_ntohs(ip.length) - (first & 15) * 4;
  } else if (first >> 4 == 6) {
    struct sy_ipv6 ip;
    bpf_probe_read_kernel(&ip, sizeof(ip), network);
    key->protocol = ip.next;
    key->hops = ip.hops;
    __builtin_memcpy(key->source, ip.source, 16);
    __builtin_memcpy(key->destination, ip.destination, 16);
    transport = network + sizeof(ip);
    behind = bpf_ntohs(ip.length);
  } else {
    return false;
  }
  if (key->protocol != SY_TCP && key->protocol != SY_UDP && key->protocol != SY_SCTP) return false;
  if (bpf_probe_read_kernel(ports, sizeof(ports), transport)) return false;
  value->source_port = ports[0];
  value->destination_port = ports[1];
  if (key->protocol == SY_TCP) {
    bpf_probe_read_kernel(offset_and_flags, sizeof(offset_and_flags), transport + 12);
    key->tcp_flags = offset_and_flags[1] & (SY_FIN | SY_SYN | SY_RST | SY_ACK);
    if (behind > (__u32)(offset_and_flags[0] >> 4) * 4) key->tcp_flags |= SY_DATA;
  }
  return true;
}

static __always_inline void read_flow(const struct sk_buff *skb, struct sy_drop_key *key) {
  const unsigned long tracked = BPF_CORE_READ(skb, _nfct);
  const struct nf_conn *flow = (const void *)(tracked & ~7UL);
  const __u8 info = tracked & 7;
  struct nf_conntrack_tuple request, answer;
  if (!flow || info == SY_UNTRACKED) return;
  bpf_probe_read_kernel(&request, sizeof(request), &flow->tuplehash[0].tuple);
  bpf_probe_read_kernel(&answer, sizeof(answer), &flow->tuplehash[1].tuple);
  if (request.protocol != key->protocol) return;
  key->direction = info >= SY_IS_REPLY ? SY_ANSWER : SY_REQUEST;
  key->flow_status = BPF_CORE_READ(flow, status);
  key->frontend_port = request.destination_port;
  key->endpoint_port = answer.source_port;
  if (request.family == SY_AF_INET) {
    fill_v4(key->client, request.source[0]);
    fill_v4(key->frontend, request.destination[0]);
    fill_v4(key->endpoint, answer.source[0]);
  } else {
    __builtin_memcpy(key->client, request.source, 16);
    __builtin_memcpy(key->frontend, request.destination, 16);
    __builtin_memcpy(key->endpoint, answer.source, 16);
  }
}

// Clients use high ports, so of two ports the lower one is the server's.
static __always_inline __u8 guess_direction(const struct sy_drop_key *key, const struct sy_drop_value *value) {
  const __u8 handshake = key->tcp_flags & (SY_SYN | SY_ACK);
  if (handshake == SY_SYN) return SY_GUESSED_REQUEST;
  if (handshake == (SY_SYN | SY_ACK)) return SY_GUESSED_ANSWER;
  return bpf_ntohs(value->source_port) < bpf_ntohs(value->destination_port) ? SY_GUESSED_ANSWER : SY_GUESSED_REQUEST;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(count_drop, struct sk_buff *skb, void *location, __u32 reason) {
  struct sy_drop_key key = {};
  struct sy_drop_value value = {};
  __u32 zero = 0;
  if (reason <= last_unspecified && !is_of_function((__u64)location)) return 0;
  if (!read_packet(skb, &key, &value)) return 0;
  __u64 *all = bpf_map_lookup_elem(&counted, &zero);
  if (all) *all += 1;
  key.reason = reason;
  key.netns = netns_of(skb);
  read_flow(skb, &key);
  if (key.direction == SY_UNKNOWN) key.direction = guess_direction(&key, &value);
  const bool is_answer = key.direction == SY_ANSWER || key.direction == SY_GUESSED_ANSWER;
  key.server_port = is_answer ? value.source_port : value.destination_port;
  struct sy_drop_value *before = bpf_map_lookup_elem(&drops, &key);
  if (before) {
    __sync_fetch_and_add(&before->count, 1);
    before->last = bpf_ktime_get_ns();
    before->length = BPF_CORE_READ(skb, len);
    before->source_port = value.source_port;
    before->destination_port = value.destination_port;
    return 0;
  }
  value.count = 1;
  value.last = bpf_ktime_get_ns();
  value.length = BPF_CORE_READ(skb, len);
  bpf_get_stack(ctx, value.stack, sizeof(value.stack), 0);
  bpf_map_update_elem(&drops, &key, &value, BPF_NOEXIST);
  return 0;
}
