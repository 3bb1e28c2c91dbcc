// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once
#include "select.h"
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>

/*
 * Fields of a packet that the wire program uses. All are read relative to the network header, which the kernel has found by then:
 * so devices without an Ethernet header need no special case, and the kernel has removed VLAN tags.
 */
struct sy_packet {
  struct sy_address source;
  struct sy_address destination;
  __be16 source_port;
  __be16 destination_port;
  __u32 transport_offset; /* of the TCP or UDP header, from the network header */
  __u8 protocol;
};

/* Extension headers before TCP or UDP; valid packets have at most one of each kind. */
#define SY_MAX_EXTENSIONS 6

#define SY_IPV4_OFFSET_MASK 0x1fff
#define SY_IPV6_OFFSET_MASK 0xfff8

struct sy_extension {
  __u8 next;
  __u8 length;
  __be16 fragment; /* offset and flags in a fragment header */
};

static __always_inline long sy_read(struct __sk_buff *skb, __u32 offset, void *to, __u32 length)
{
  return bpf_skb_load_bytes_relative(skb, offset, to, length, BPF_HDR_START_NET);
}

static __always_inline int sy_parse_ipv4(struct __sk_buff *skb, struct sy_packet *packet)
{
  struct iphdr header;
  if (sy_read(skb, 0, &header, sizeof(header)) < 0 || header.version != 4) return 0;
  if (header.frag_off & bpf_htons(SY_IPV4_OFFSET_MASK)) return 0; /* without ports; it follows its first fragment */
  sy_from_v4(&packet->source, header.saddr);
  sy_from_v4(&packet->destination, header.daddr);
  packet->protocol = header.protocol;
  packet->transport_offset = header.ihl * 4;
  return 1;
}

static __always_inline int sy_parse_ipv6(struct __sk_buff *skb, struct sy_packet *packet)
{
  struct ipv6hdr header;
  if (sy_read(skb, 0, &header, sizeof(header)) < 0 || header.version != 6) return 0;
  __builtin_memcpy(&packet->source, &header.saddr, sizeof(packet->source));
  __builtin_memcpy(&packet->destination, &header.daddr, sizeof(packet->destination));
  __u8 next = header.nexthdr;
  __u32 offset = sizeof(header);
  for (int i = 0; i < SY_MAX_EXTENSIONS; i++) {
    struct sy_extension extension;
    if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS && next != IPPROTO_FRAGMENT) break;
    if (sy_read(skb, offset, &extension, sizeof(extension)) < 0) return 0;
    if (next == IPPROTO_FRAGMENT) {
      if (extension.fragment & bpf_htons(SY_IPV6_OFFSET_MASK)) return 0;
      offset += 8;
    } else {
      offset += (extension.length + 1) * 8;
    }
    next = extension.next;
  }
  packet->protocol = next;
  packet->transport_offset = offset;
  return 1;
}

/* Whether this is for the dataplane at all: TCP or UDP of this family, for this machine, with ports in it. */
static __always_inline int sy_parse(struct __sk_buff *skb, __u8 family, struct sy_packet *packet)
{
  __be16 ports[2];
  if (skb->pkt_type != PACKET_HOST) return 0;
  /* A tag other than the priority tag belongs to a VLAN device, which has a program of its own, or is foreign. */
  if (skb->vlan_present && (skb->vlan_tci & 0x0fff) != 0) return 0;
  if (family == 4) {
    if (skb->protocol != bpf_htons(ETH_P_IP) || !sy_parse_ipv4(skb, packet)) return 0;
  } else {
    if (skb->protocol != bpf_htons(ETH_P_IPV6) || !sy_parse_ipv6(skb, packet)) return 0;
  }
  if (packet->protocol != IPPROTO_TCP && packet->protocol != IPPROTO_UDP) return 0;
  if (sy_read(skb, packet->transport_offset, ports, sizeof(ports)) < 0) return 0;
  packet->source_port = ports[0];
  packet->destination_port = ports[1];
  return 1;
}

#define SY_TCP_FIN 0x01
#define SY_TCP_SYN 0x02
#define SY_TCP_RST 0x04
#define SY_TCP_ACK 0x10
#define SY_TCP_FLAGS_OFFSET 13

/* Whether a connection may begin with the packet. A SYN with further flags is no first packet. */
static __always_inline int sy_is_first(struct __sk_buff *skb, const struct sy_packet *packet)
{
  __u8 flags;
  if (packet->protocol == IPPROTO_UDP) return 1;
  if (sy_read(skb, packet->transport_offset + SY_TCP_FLAGS_OFFSET, &flags, sizeof(flags)) < 0) return 0;
  return (flags & (SY_TCP_FIN | SY_TCP_SYN | SY_TCP_RST | SY_TCP_ACK)) == SY_TCP_SYN;
}
