// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * What comes in from the network for a Service: finds the endpoint and leaves the rest to the kernel's conntrack
 * (docs/design/ebpf-wire.md). One instance for each IP family, at tc ingress of the node's uplinks. It never ends the
 * chain of programs but to drop: what it does not know is for those behind it.
 */
#include "select.h"
#include "wire-conntrack.h"
#include "wire-masquerade.h"
#include <linux/pkt_cls.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* 4 or 6. */
const volatile __u8 family = 4;
/* Set in the mark of what is for a Service and must not go on without NAT, and of what is to be refused. The guard table acts on them. */
const volatile __u32 service_mark = 0;
const volatile __u32 reject_mark = 0;
/* Whether the kernel is asked for the source address of a route. */
const volatile __u8 asks_source = 1;

/* How often an entry is tried to be made; it fails when another CPU was faster. */
#define SY_TRACK_TRIES 2

static __always_inline __u32 *sy_node_address(const struct sy_address *address)
{
  return bpf_map_lookup_elem(&node_addresses, address);
}

static __always_inline __u8 sy_class_of(const struct sy_address *source)
{
  struct sy_pod_cidr_key key = { .prefix_length = 128, .address = *source };
  if (bpf_map_lookup_elem(&pod_cidrs, &key)) return SY_CLASS_POD;
  return sy_node_address(source) ? SY_CLASS_NODE : SY_CLASS_OUTSIDE;
}

/*
 * Who the endpoint sees. An endpoint that is this node itself sees the client: nothing leaves the node there, so kube-proxy's rules
 * do not masquerade either. A client that is the endpoint must not see its own address.
 */
static __always_inline int sy_source(struct __sk_buff *skb, const struct sy_packet *packet, const struct sy_choice *choice,
                                     struct sy_address *source)
{
  *source = packet->source;
  if (!choice->masquerade && !sy_is_same(&choice->address, &packet->source)) return 1;
  if (sy_node_address(&choice->address)) return 1;
  return sy_masquerade_address(skb, packet, &choice->address, source, family, asks_source);
}

static __always_inline int sy_forward(struct __sk_buff *skb, const struct sy_packet *packet, const struct sy_choice *choice)
{
  struct sy_translation translation;
  translation.endpoint = choice->address;
  translation.port = choice->port;
  if (!sy_source(skb, packet, choice, &translation.source)) return TC_ACT_SHOT;
  for (int i = 0; i < SY_TRACK_TRIES; i++) {
    if (sy_track(skb, packet, &translation, family) || sy_is_tracked(skb, packet, family)) {
      skb->mark |= service_mark;
      return TC_ACT_UNSPEC;
    }
  }
  return TC_ACT_SHOT; /* the client tries again */
}

SEC("tc")
int lb_in(struct __sk_buff *skb)
{
  struct sy_packet packet;
  struct sy_request request;
  struct sy_frontend frontend;
  struct sy_choice choice;

  if (!sy_parse(skb, family, &packet)) return TC_ACT_UNSPEC;
  __builtin_memset(&request, 0, sizeof(request));
  request.destination = packet.destination;
  request.port = packet.destination_port;
  request.protocol = packet.protocol;
  int verdict = sy_find(&request, &frontend);
  if (verdict == SY_PASS) return TC_ACT_UNSPEC;
  if (!sy_is_first(skb, &packet)) {
    skb->mark |= service_mark; /* of a connection that conntrack knows, or it is reset */
    return TC_ACT_UNSPEC;
  }
  if (sy_is_tracked(skb, &packet, family)) return TC_ACT_UNSPEC;
  if (verdict == SY_FOUND) {
    request.client = packet.source;
    request.client_kind = SY_AFFINITY_ADDRESS;
    request.random = bpf_get_prandom_u32();
    request.class = sy_class_of(&packet.source);
    verdict = sy_pick(&request, &frontend, &choice);
  }
  switch (verdict) {
  case SY_PASS:
    return TC_ACT_UNSPEC;
  case SY_FORWARD:
    return sy_forward(skb, &packet, &choice);
  case SY_REJECT:
    skb->mark |= reject_mark;
    return TC_ACT_UNSPEC;
  default:
    return TC_ACT_SHOT;
  }
}
