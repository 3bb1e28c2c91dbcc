// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

// BPF_PROG makes functions with a context that not all of them use.
#pragma clang diagnostic ignored "-Wunused-parameter"

// Direction of a packet in its flow. Guessed: without connection tracking, by TCP flags and ports.
enum sy_direction { SY_UNKNOWN, SY_REQUEST, SY_ANSWER, SY_GUESSED_REQUEST, SY_GUESSED_ANSWER };

// Layout of both records: packages/drops/src/kernel/drop-records.ts reads them. Addresses have 16 bytes, IPv4 as ::ffff:a.b.c.d.
struct sy_drop_key {
  __u8 source[16];
  __u8 destination[16];
  // The flow's, of connection tracking; zero without it.
  __u8 client[16];
  __u8 frontend[16];
  __u8 endpoint[16];
  __be16 frontend_port;
  __be16 endpoint_port;
  __u32 flow_status;  // IPS_*
  __u64 netns;        // cookie: unlike the inode it is never used again
  __u32 reason;       // enum skb_drop_reason of this kernel
  __be16 server_port; // port of the packet at the server's side
  __u8 protocol;
  __u8 tcp_flags;
  __u8 direction;
  __u8 hops; // left: TTL or hop limit
  __u8 unused[6];
};
_Static_assert(__builtin_offsetof(struct sy_drop_key, frontend_port) == 80, "frontend_port");
_Static_assert(__builtin_offsetof(struct sy_drop_key, server_port) == 100, "server_port");
_Static_assert(sizeof(struct sy_drop_key) == 112, "key");

#define SY_MAX_FUNCTIONS 32
struct sy_function {
  __u64 start;
  __u64 end;
};

#define SY_STACK_DEPTH 10
struct sy_drop_value {
  __u64 count;
  __u64 last; // ns of CLOCK_MONOTONIC
  __u64 stack[SY_STACK_DEPTH]; // of the first packet
  __u32 length;                // of the last packet, with its IP header
  __be16 source_port;          // of the last packet
  __be16 destination_port;
};
_Static_assert(__builtin_offsetof(struct sy_drop_value, length) == 96, "length");
_Static_assert(sizeof(struct sy_drop_value) == 104, "value");

// Numbers that the kernel never changes.
#define SY_IS_REPLY 3   // IP_CT_IS_REPLY
#define SY_UNTRACKED 7  // IP_CT_UNTRACKED
#define SY_AF_INET 2
#define SY_TCP 6
#define SY_UDP 17
#define SY_SCTP 132
#define SY_FIN 1
#define SY_SYN 2
#define SY_RST 4
#define SY_ACK 16
// Added to the flags of a segment with data; no flag has this bit there.
#define SY_DATA 128

struct sy_ipv4 {
  __u8 first, service;
  __be16 length, id, fragment;
  __u8 ttl, protocol;
  __be16 checksum;
  __be32 source, destination;
};
struct sy_ipv6 {
  __u8 first[4];
  __be16 length;
  __u8 next, hops;
  __u8 source[16], destination[16];
};

// Bit of _skb_refdst: the packet holds no reference to its route (SKB_DST_NOREF).
#define SY_WITHOUT_REFERENCE 1UL

// Partial declarations of kernel types; libbpf relocates the fields when it loads the program.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net {
  __u64 net_cookie;
};
typedef struct {
  struct net *net;
} possible_net_t;
struct net_device {
  possible_net_t nd_net;
};
struct sock_common {
  possible_net_t skc_net;
};
struct sock {
  struct sock_common __sk_common;
};
struct dst_entry {
  struct net_device *dev;
};
struct sk_buff {
  struct net_device *dev;
  struct sock *sk;
  unsigned long _skb_refdst;
  unsigned long _nfct;
  unsigned int len;
  unsigned char *head;
  __u16 network_header;
};
#pragma clang attribute pop

// Read as a whole: all kernels since 2.6.20 have these fields in this order.
struct nf_conntrack_tuple {
  __u32 source[4];
  __be16 source_port;
  __u16 family;
  __u32 destination[4];
  __be16 destination_port;
  __u8 protocol;
  __u8 direction;
};
struct nf_conntrack_tuple_hash {
  struct nf_conntrack_tuple tuple;
} __attribute__((preserve_access_index));
struct nf_conn {
  struct nf_conntrack_tuple_hash tuplehash[2];
  unsigned long status;
} __attribute__((preserve_access_index));
