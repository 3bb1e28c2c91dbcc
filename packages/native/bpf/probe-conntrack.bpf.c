// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
//
// A tc program that makes connection tracking entries with NAT (Linux 6.1.2). Loaded to learn whether the kernel accepts it; never
// attached.
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// The kernel compares types by kind only; what is in them does not matter here.
struct nf_conn {
  __u8 unused;
} __attribute__((preserve_access_index));
struct nf_conn___init {
  __u8 unused;
} __attribute__((preserve_access_index));
union nf_inet_addr {
  __u32 all[4];
};
struct bpf_ct_opts {
  __s32 netns_id;
  __s32 error;
  __u8 l4proto;
  __u8 dir;
  __u8 reserved[2];
};
enum nf_nat_manip_type { NF_NAT_MANIP_SRC, NF_NAT_MANIP_DST };

extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *, struct bpf_sock_tuple *, __u32, struct bpf_ct_opts *,
                                         __u32) __ksym;
extern struct nf_conn___init *bpf_skb_ct_alloc(struct __sk_buff *, struct bpf_sock_tuple *, __u32,
                                               struct bpf_ct_opts *, __u32) __ksym;
extern struct nf_conn *bpf_ct_insert_entry(struct nf_conn___init *) __ksym;
extern void bpf_ct_release(struct nf_conn *) __ksym;
extern void bpf_ct_set_timeout(struct nf_conn___init *, __u32) __ksym;
extern int bpf_ct_change_timeout(struct nf_conn *, __u32) __ksym;
extern int bpf_ct_set_nat_info(struct nf_conn___init *, union nf_inet_addr *, int, enum nf_nat_manip_type) __ksym;

SEC("tc")
int conntrack_nat(struct __sk_buff *packet) {
  struct bpf_sock_tuple tuple = {};
  struct bpf_ct_opts options = {.netns_id = -1, .l4proto = 6};
  union nf_inet_addr address = {};
  struct nf_conn *found = bpf_skb_ct_lookup(packet, &tuple, sizeof(tuple.ipv4), &options, sizeof(options));
  if (found) {
    bpf_ct_change_timeout(found, 0);
    bpf_ct_release(found);
  }
  struct nf_conn___init *made = bpf_skb_ct_alloc(packet, &tuple, sizeof(tuple.ipv4), &options, sizeof(options));
  if (!made) return -1;
  bpf_ct_set_nat_info(made, &address, 80, NF_NAT_MANIP_DST);
  bpf_ct_set_nat_info(made, &address, 80, NF_NAT_MANIP_SRC);
  bpf_ct_set_timeout(made, 10000);
  struct nf_conn *entry = bpf_ct_insert_entry(made);
  if (entry) bpf_ct_release(entry);
  return -1;
}
