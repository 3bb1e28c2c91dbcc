// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once
#include "wire-packet.h"

/* BPF_FIB_LOOKUP_SRC: Linux 6.7, and not in older headers. Kernels before that refuse the look-up. */
#define SY_FIB_LOOKUP_SRC (1U << 4)

#define SY_AF_INET 2
#define SY_AF_INET6 10

static __always_inline int sy_is_set(const struct sy_address *address, __u8 family)
{
  if (family == 4) return address->word[3] != 0;
  return (address->word[0] | address->word[1] | address->word[2] | address->word[3]) != 0;
}

static __always_inline long sy_route(struct __sk_buff *skb, const struct sy_packet *packet,
                                     const struct sy_address *endpoint, struct bpf_fib_lookup *route, __u8 family,
                                     __u32 flags)
{
  __builtin_memset(route, 0, sizeof(*route));
  route->ifindex = skb->ifindex;
  route->l4_protocol = packet->protocol;
  if (family == 4) {
    route->family = SY_AF_INET;
    route->ipv4_src = packet->source.word[3];
    route->ipv4_dst = endpoint->word[3];
  } else {
    route->family = SY_AF_INET6;
    __builtin_memcpy(route->ipv6_src, &packet->source, 16);
    __builtin_memcpy(route->ipv6_dst, endpoint, 16);
  }
  return bpf_fib_lookup(skb, route, sizeof(*route), flags);
}

/* Whether the kernel found a route, with or without a neighbour entry. */
static __always_inline int sy_is_route(long result)
{
  return result == BPF_FIB_LKUP_RET_SUCCESS || result == BPF_FIB_LKUP_RET_NO_NEIGH ||
         result == BPF_FIB_LKUP_RET_FRAG_NEEDED;
}

/*
 * This node's address for packets to the endpoint: the route's source address (Linux 6.7), otherwise that of the route's device,
 * otherwise the node's. Returns 0 without any.
 */
static __always_inline int sy_masquerade_address(struct __sk_buff *skb, const struct sy_packet *packet,
                                                 const struct sy_address *endpoint, struct sy_address *address,
                                                 __u8 family, int asks_kernel)
{
  struct bpf_fib_lookup route;
  if (asks_kernel && sy_is_route(sy_route(skb, packet, endpoint, &route, family, SY_FIB_LOOKUP_SRC))) {
    if (family == 4) {
      sy_from_v4(address, route.ipv4_src);
    } else {
      __builtin_memcpy(address, route.ipv6_src, 16);
    }
    if (sy_is_set(address, family)) return 1;
  }
  __u32 device = sy_is_route(sy_route(skb, packet, endpoint, &route, family, 0)) ? route.ifindex : 0;
  const struct sy_address *found = bpf_map_lookup_elem(&masq_addresses, &device);
  if (!found && device != 0) {
    device = 0;
    found = bpf_map_lookup_elem(&masq_addresses, &device);
  }
  if (!found) return 0;
  *address = *found;
  return sy_is_set(address, family);
}
