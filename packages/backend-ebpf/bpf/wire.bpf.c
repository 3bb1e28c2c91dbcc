// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Traffic from the network for a Service: finds the endpoint and leaves the rest to the kernel's conntrack
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
/* Bits in the mark of packets for a Service, which must not pass without NAT, and of refused packets. The guard table acts on them. */
const volatile __u32 service_mark = 0;
const volatile __u32 reject_mark = 0;
/* Whether the program requests the source address of a route. */
const volatile __u8 asks_source = 1;

/* How often an entry is tried to be made; it fails when another CPU was faster. */
#define SY_TRACK_TRIES 2

/*
 * The steps are global functions: the verifier looks at each once, by itself, rather than at all their combinations. It takes
 * their arguments for pointers that may be null.
 */
__noinline int wire_parse(struct __sk_buff *skb, struct sy_packet *packet)
{
  if (!packet) return 0;
  return sy_parse(skb, family, packet);
}

__noinline int wire_find(const struct sy_packet *packet, struct sy_request *request, struct sy_frontend *frontend)
{
  if (!packet || !request || !frontend) return SY_PASS;
  __builtin_memset(request, 0, sizeof(*request));
  request->destination = packet->destination;
  request->port = packet->destination_port;
  request->protocol = packet->protocol;
  return sy_find(request, frontend);
}

__noinline int wire_is_tracked(struct __sk_buff *skb, const struct sy_packet *packet)
{
  if (!packet) return 0;
  return sy_is_tracked(skb, packet, family);
}

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

__noinline int wire_pick(const struct sy_packet *packet, struct sy_request *request, struct sy_frontend *frontend,
                         struct sy_choice *choice)
{
  if (!packet || !request || !frontend || !choice) return SY_DROP;
  request->client = packet->source;
  request->client_kind = SY_AFFINITY_ADDRESS;
  request->random = bpf_get_prandom_u32();
  request->class = sy_class_of(&packet->source);
  /* Rules carry these for pods, because sockets leave them alone: then the CNI's masquerade applies. */
  if (request->class == SY_CLASS_POD && (sy_frontend_actions(frontend->value) & SY_FRONTEND_SOURCE_RANGES)) return SY_PASS;
  return sy_pick(request, frontend, choice);
}

/*
 * Who the endpoint sees. An endpoint that is this node itself sees the client: nothing leaves the node there, so kube-proxy's rules
 * do not masquerade either. A client that is the endpoint must not see its own address.
 */
__noinline int wire_source(struct __sk_buff *skb, const struct sy_packet *packet, const struct sy_choice *choice,
                           struct sy_address *source)
{
  if (!packet || !choice || !source) return 0;
  struct sy_address endpoint = choice->address;
  *source = packet->source;
  if (!choice->masquerade && !sy_is_same(&endpoint, source)) return 1;
  if (sy_node_address(&endpoint)) return 1;
  return sy_masquerade_address(skb, packet, &endpoint, source, family, asks_source);
}

__noinline int wire_track(struct __sk_buff *skb, const struct sy_packet *packet,
                          const struct sy_translation *translation)
{
  if (!packet || !translation) return 0;
  return sy_track(skb, packet, translation, family);
}

static __always_inline int sy_forward(struct __sk_buff *skb, const struct sy_packet *packet, const struct sy_choice *choice)
{
  struct sy_translation translation;
  translation.endpoint = choice->address;
  translation.port = choice->port;
  if (!wire_source(skb, packet, choice, &translation.source)) return TC_ACT_SHOT;
  for (int i = 0; i < SY_TRACK_TRIES; i++) {
    if (wire_track(skb, packet, &translation) || wire_is_tracked(skb, packet)) {
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

  __builtin_memset(&packet, 0, sizeof(packet));
  if (!wire_parse(skb, &packet)) return TC_ACT_UNSPEC;
  __builtin_memset(&request, 0, sizeof(request));
  __builtin_memset(&frontend, 0, sizeof(frontend));
  int verdict = wire_find(&packet, &request, &frontend);
  if (verdict == SY_PASS) return TC_ACT_UNSPEC;
  /* Said and counted at the device below: the port of this bridge, or a member of this bond. */
  if (skb->mark & reject_mark) return TC_ACT_UNSPEC;
  if (!sy_is_first(skb, &packet)) {
    skb->mark |= service_mark; /* of a connection that conntrack knows, or it is reset */
    return TC_ACT_UNSPEC;
  }
  if (wire_is_tracked(skb, &packet)) return TC_ACT_UNSPEC;
  if (verdict == SY_FOUND) {
    __builtin_memset(&choice, 0, sizeof(choice));
    verdict = wire_pick(&packet, &request, &frontend, &choice);
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
