// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once
#include "wire-packet.h"

/*
 * Conntrack entries with both sides of NAT in them (Linux 6.1). The kernel's own hooks find the entry with the same packet,
 * a moment later, and do the rest: NAT, ports, answers, ICMP errors, fragments. Packets are never rewritten here.
 */

/* Partial declarations of kernel types; libbpf relocates the fields when it loads the program. */
struct ip_ct_tcp {
  __u8 state;
} __attribute__((preserve_access_index));
union nf_conntrack_proto {
  struct ip_ct_tcp tcp;
} __attribute__((preserve_access_index));
struct nf_conn {
  union nf_conntrack_proto proto;
} __attribute__((preserve_access_index));
struct nf_conn___init {
  struct nf_conn ct;
} __attribute__((preserve_access_index));
union nf_inet_addr {
  __u32 all[4];
};
enum nf_nat_manip_type { NF_NAT_MANIP_SRC, NF_NAT_MANIP_DST };

/* As long as all kernels take it; later ones added a zone. */
struct bpf_ct_opts {
  __s32 netns_id;
  __s32 error;
  __u8 l4proto;
  __u8 dir;
  __u8 reserved[2];
};

extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *skb, struct bpf_sock_tuple *tuple, __u32 tuple_size,
                                         struct bpf_ct_opts *opts, __u32 opts_size) __ksym;
extern struct nf_conn___init *bpf_skb_ct_alloc(struct __sk_buff *skb, struct bpf_sock_tuple *tuple, __u32 tuple_size,
                                               struct bpf_ct_opts *opts, __u32 opts_size) __ksym;
extern int bpf_ct_set_nat_info(struct nf_conn___init *ct, union nf_inet_addr *address, int port,
                               enum nf_nat_manip_type manip) __ksym;
extern void bpf_ct_set_timeout(struct nf_conn___init *ct, __u32 milliseconds) __ksym;
extern int bpf_ct_change_timeout(struct nf_conn *ct, __u32 milliseconds) __ksym;
extern struct nf_conn *bpf_ct_insert_entry(struct nf_conn___init *ct) __ksym;
extern void bpf_ct_release(struct nf_conn *ct) __ksym;

/*
 * Timeout until conntrack itself sees the packet, some microseconds later, and applies its own. An entry whose packet is dropped in
 * between stays for this time.
 */
#define SY_NEW_ENTRY_MS 5000

/* Of enum tcp_conntrack: at a SYN the kernel deletes such an entry with its NAT. */
#define SY_TCP_STATE_TIME_WAIT 7
#define SY_TCP_STATE_CLOSE 8

static __always_inline void sy_fill_tuple(struct bpf_sock_tuple *to, const struct sy_packet *packet, __u8 family)
{
  __builtin_memset(to, 0, sizeof(*to));
  if (family == 4) {
    to->ipv4.saddr = packet->source.word[3];
    to->ipv4.daddr = packet->destination.word[3];
    to->ipv4.sport = packet->source_port;
    to->ipv4.dport = packet->destination_port;
  } else {
    __builtin_memcpy(to->ipv6.saddr, &packet->source, 16);
    __builtin_memcpy(to->ipv6.daddr, &packet->destination, 16);
    to->ipv6.sport = packet->source_port;
    to->ipv6.dport = packet->destination_port;
  }
}

static __always_inline void sy_fill_address(union nf_inet_addr *to, const struct sy_address *address, __u8 family)
{
  __builtin_memset(to, 0, sizeof(*to));
  if (family == 4) {
    to->all[0] = address->word[3];
  } else {
    __builtin_memcpy(to, address, sizeof(*to));
  }
}

#define SY_CT_OPTS(name, ip_protocol)                                                                                  \
  struct bpf_ct_opts name = {.netns_id = BPF_F_CURRENT_NETNS, .l4proto = (ip_protocol)}

/*
 * Whether conntrack knows the packet's flow, in either direction. An entry that a SYN would make it forget is ended here, so
 * that the next look-up collects it: or the kernel would replace it with one without NAT.
 */
static __always_inline int sy_is_tracked(struct __sk_buff *skb, const struct sy_packet *packet, __u8 family)
{
  SY_CT_OPTS(opts, packet->protocol);
  struct bpf_sock_tuple to;
  sy_fill_tuple(&to, packet, family);
  for (int i = 0; i < 2; i++) {
    struct nf_conn *ct =
        family == 4 ? bpf_skb_ct_lookup(skb, &to, sizeof(to.ipv4), &opts, sizeof(opts))
                    : bpf_skb_ct_lookup(skb, &to, sizeof(to.ipv6), &opts, sizeof(opts));
    if (!ct) return 0;
    __u8 state = packet->protocol == IPPROTO_TCP ? ct->proto.tcp.state : 0;
    int is_over = state == SY_TCP_STATE_TIME_WAIT || state == SY_TCP_STATE_CLOSE;
    if (is_over) bpf_ct_change_timeout(ct, 0);
    bpf_ct_release(ct);
    if (!is_over) return 1;
  }
  return 0;
}

/* New destination and source of a flow. */
struct sy_translation {
  struct sy_address endpoint;
  struct sy_address source; /* the client's own where it is kept */
  __be16 port;
};

/*
 * Makes the entry. The source is always set, also to its own value: only then the kernel chooses another port if the answers of two
 * flows would be ambiguous. Fails if another CPU made an entry for the same flow or the same answers first.
 */
static __always_inline int sy_track(struct __sk_buff *skb, const struct sy_packet *packet,
                                    const struct sy_translation *translation, __u8 family)
{
  SY_CT_OPTS(opts, packet->protocol);
  struct bpf_sock_tuple from;
  union nf_inet_addr address;
  sy_fill_tuple(&from, packet, family);
  struct nf_conn___init *fresh =
      family == 4 ? bpf_skb_ct_alloc(skb, &from, sizeof(from.ipv4), &opts, sizeof(opts))
                  : bpf_skb_ct_alloc(skb, &from, sizeof(from.ipv6), &opts, sizeof(opts));
  if (!fresh) return 0;
  sy_fill_address(&address, &translation->endpoint, family);
  int failed = bpf_ct_set_nat_info(fresh, &address, bpf_ntohs(translation->port), NF_NAT_MANIP_DST);
  sy_fill_address(&address, &translation->source, family);
  failed |= bpf_ct_set_nat_info(fresh, &address, 0, NF_NAT_MANIP_SRC);
  bpf_ct_set_timeout(fresh, SY_NEW_ENTRY_MS);
  struct nf_conn *ct = bpf_ct_insert_entry(fresh); /* also where NAT failed: there is no other way to get rid of it */
  if (!ct) return 0;
  if (failed) bpf_ct_change_timeout(ct, 0);
  bpf_ct_release(ct);
  return !failed;
}
