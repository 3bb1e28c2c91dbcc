// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Socket load balancing: replaces a frontend by an endpoint when a socket connects or sends, before there is a packet. connect and
 * sendmsg replace the destination; recvmsg and getpeername show the frontend, so that applications see no difference. Handles TCP and
 * UDP only. Answers to clients that masquerading gave a frontend's address and port stay unchanged.
 */
#include "select.h"

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define ECONNREFUSED 111
#define SY_CONNECTED 1 /* TCP_ESTABLISHED, also of UDP */

/* Return values of a program of type cgroup_sock_addr. */
#define SY_ALLOW 1
#define SY_REFUSE 0 /* EPERM, where no other error was set */

/*
 * Address family of this instance: 4 or 6. A hook for IPv6 sockets also sees IPv4, as ::ffff:a.b.c.d; the instance of IPv4, which is
 * attached there too, handles it.
 */
const volatile __u32 family = 4;
/* 0: all sockets. 1: only those in the network namespace of the host. */
const volatile __u32 socket_scope = 0;
/*
 * Whether the kernel has bpf_set_retval. The agent probes it and sets the constant: with CO-RE libbpf would read and index all of the
 * kernel's BTF for it, half of the loading time.
 */
const volatile __u32 has_set_retval = 1;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The address in a socket call: the destination of a connect or a datagram, the sender of a datagram, or the peer. */
struct sy_peer {
  struct sy_address address;
  __be16 port;
};

static __always_inline void sy_read_peer(struct bpf_sock_addr *context, int hook, struct sy_peer *peer)
{
  peer->port = (__be16)context->user_port;
  if (hook == 4) {
    sy_from_v4(&peer->address, context->user_ip4);
    return;
  }
  peer->address.word[0] = context->user_ip6[0];
  peer->address.word[1] = context->user_ip6[1];
  peer->address.word[2] = context->user_ip6[2];
  peer->address.word[3] = context->user_ip6[3];
}

static __always_inline void sy_write_peer(struct bpf_sock_addr *context, int hook, const struct sy_address *address, __be16 port)
{
  context->user_port = port;
  if (hook == 4) {
    context->user_ip4 = address->word[3];
    return;
  }
  context->user_ip6[0] = address->word[0];
  context->user_ip6[1] = address->word[1];
  context->user_ip6[2] = address->word[2];
  context->user_ip6[3] = address->word[3];
}

static __always_inline int sy_is_for_us(struct bpf_sock_addr *context, const struct sy_address *address)
{
  if ((family == 4) != sy_is_v4(address)) return 0;
  return context->protocol == IPPROTO_TCP || context->protocol == IPPROTO_UDP;
}

/* Needs Linux 5.18; on older kernels the application gets EPERM. */
static __always_inline int sy_refuse(void)
{
  if (has_set_retval) bpf_set_retval(-ECONNREFUSED);
  return SY_REFUSE;
}

static __always_inline void sy_name_flow(struct bpf_sock_addr *context, __u8 kind, const struct sy_address *address, __be16 port,
                                         struct sy_flow_key *key)
{
  key->socket = bpf_get_socket_cookie(context);
  key->address = *address;
  key->port = port;
  key->protocol = context->protocol;
  key->kind = kind;
  key->local_port = 0;
}

/* Writes a flow entry. `to`: the frontend or the endpoint, depending on the kind. */
static __always_inline void sy_write_flow(const struct sy_flow_key *key, const struct sy_address *to, __be16 port,
                                          const struct sy_choice *choice)
{
  struct sy_flow_value flow = {
    .address = *to,
    .port = port,
    .endpoint = choice->endpoint,
    .generation = choice->generation,
    .service = choice->service,
    .last_used = bpf_ktime_get_ns(),
  };
  bpf_map_update_elem(&flows, key, &flow, BPF_ANY);
}

/* Deletes the reverse entry of an address that the socket now uses directly, so that it is not shown as a former frontend. */
static __always_inline void sy_forget(struct bpf_sock_addr *context, const struct sy_peer *peer)
{
  struct sy_flow_key key;
  sy_name_flow(context, SY_FLOW_REVERSE, &peer->address, peer->port, &key);
  if (bpf_map_lookup_elem(&flows, &key)) bpf_map_delete_elem(&flows, &key);
}

/* Fills in the client. Returns 0 for a socket that is not served. */
static __always_inline int sy_fill_client(struct bpf_sock_addr *context, struct sy_request *request)
{
  struct sy_configuration *settings = sy_settings();
  if (!settings) return 0;
  __u64 namespace = bpf_get_netns_cookie(context);
  int is_host = namespace == SY_LOAD64(settings, host_netns);
  if (socket_scope == 1 && !is_host) return 0;
  request->class = is_host ? SY_CLASS_NODE : settings->pod_class;
  request->client_kind = SY_AFFINITY_NETWORK_NAMESPACE;
  request->client.word[2] = (__u32)namespace;
  request->client.word[3] = namespace >> 32;
  request->random = bpf_get_prandom_u32();
  return 1;
}

/* Nanoseconds since its last use. Another CPU may have written it in between. */
static __always_inline __u64 sy_age(const struct sy_flow_value *flow)
{
  __u64 now = bpf_ktime_get_ns();
  __u64 used = SY_LOAD64(flow, last_used);
  return now > used ? now - used : 0;
}

/* Finds the endpoint of this socket's former datagrams to the frontend. A recent one is kept if it is alive. */
static __always_inline void sy_find_sticky(const struct sy_flow_key *key, struct sy_request *request)
{
  struct sy_flow_value *flow = bpf_map_lookup_elem(&flows, key);
  const struct sy_configuration *settings = sy_settings();
  if (!flow || !settings) return;
  __u64 age = sy_age(flow);
  if (age > settings->udp_sticky_seconds * SY_SECOND) return;
  request->kept_endpoint = SY_LOAD32(flow, endpoint);
  request->kept_generation = SY_LOAD32(flow, generation);
  if (age > SY_SECOND) SY_STORE64(flow, last_used, bpf_ktime_get_ns());
}

/* Answers to an unconnected socket have the endpoint's address. Writes its reverse entry if it is absent or has another frontend. */
static __always_inline void sy_remember_reverse(const struct sy_flow_key *key, const struct sy_peer *frontend,
                                                const struct sy_choice *choice)
{
  const struct sy_flow_value *known = bpf_map_lookup_elem(&flows, key);
  if (known && known->port == frontend->port && sy_is_same(&known->address, &frontend->address)) return;
  sy_write_flow(key, &frontend->address, frontend->port, choice);
}

/*
 * A frontend's address and port may also be a client's: masquerading gives a client this node's address and any port, which may be a
 * NodePort. Connection tracking distinguishes answers by the packet; here the socket must have received a datagram from the client.
 * The key has the port and not the socket, because servers with a socket per client connect another one. Returns 0 without a port.
 */
static __always_inline int sy_name_caller(struct bpf_sock_addr *context, const struct sy_peer *caller, struct sy_flow_key *key)
{
  struct bpf_sock *socket = context->sk;
  if (!socket || context->protocol != IPPROTO_UDP) return 0;
  key->socket = bpf_get_netns_cookie(context);
  key->address = caller->address;
  key->port = caller->port;
  key->protocol = IPPROTO_UDP;
  key->kind = SY_FLOW_CALLER;
  key->local_port = socket->src_port;
  return key->local_port != 0;
}

/* Records the sender of a datagram without a reverse entry as a client, if its address is also a frontend's. */
static __always_inline void sy_note_caller(struct bpf_sock_addr *context, const struct sy_peer *sender)
{
  struct bpf_sock *socket = context->sk;
  if (context->protocol != IPPROTO_UDP || !socket || socket->state == SY_CONNECTED) return;
  struct sy_request request = { .destination = sender->address, .port = sender->port, .protocol = IPPROTO_UDP };
  struct sy_frontend frontend;
  struct sy_flow_key key;
  if (sy_find(&request, &frontend) != SY_FOUND || !sy_name_caller(context, sender, &key)) return;
  const struct sy_flow_value *known = bpf_map_lookup_elem(&flows, &key);
  if (known && sy_age(known) < SY_SECOND) return;
  struct sy_flow_value flow = { .last_used = bpf_ktime_get_ns() };
  bpf_map_update_elem(&flows, &key, &flow, BPF_ANY);
}

/* Whether a destination that is a frontend has sent to this socket's port lately: then the datagram is an answer. */
static __always_inline int sy_is_caller(struct bpf_sock_addr *context, const struct sy_peer *to)
{
  struct sy_flow_key key;
  if (!sy_name_caller(context, to, &key)) return 0;
  const struct sy_flow_value *flow = bpf_map_lookup_elem(&flows, &key);
  const struct sy_configuration *settings = sy_settings();
  return flow && settings && sy_age(flow) <= settings->udp_sticky_seconds * SY_SECOND;
}

/*
 * Whether a datagram of a connected socket already has its destination. It has if it goes to the socket's peer: an IPv6 socket that uses
 * IPv4 runs this hook for each datagram, and its endpoint must not be replaced. It also has if it names the frontend that the socket
 * connected to: the socket receives from that endpoint only.
 */
static __always_inline int sy_is_settled(struct bpf_sock_addr *context, int hook, const struct sy_peer *to)
{
  struct bpf_sock *socket = context->sk;
  if (!socket || socket->state != SY_CONNECTED) return 0;
  struct sy_peer peer = { .port = socket->dst_port };
  if (hook == 4) {
    sy_from_v4(&peer.address, socket->dst_ip4);
  } else {
    peer.address.word[0] = socket->dst_ip6[0];
    peer.address.word[1] = socket->dst_ip6[1];
    peer.address.word[2] = socket->dst_ip6[2];
    peer.address.word[3] = socket->dst_ip6[3];
  }
  if (peer.port == to->port && sy_is_same(&peer.address, &to->address)) return 1;
  struct sy_flow_key key;
  sy_name_flow(context, SY_FLOW_REVERSE, &peer.address, peer.port, &key);
  const struct sy_flow_value *flow = bpf_map_lookup_elem(&flows, &key);
  if (!flow || flow->port != to->port || !sy_is_same(&flow->address, &to->address)) return 0;
  sy_write_peer(context, hook, &peer.address, peer.port);
  return 1;
}

static __always_inline int sy_send(struct bpf_sock_addr *context, int hook, int is_connect)
{
  struct sy_peer peer;
  sy_read_peer(context, hook, &peer);
  if (!sy_is_for_us(context, &peer.address)) return SY_ALLOW;
  if (!is_connect && sy_is_settled(context, hook, &peer)) return SY_ALLOW;

  struct sy_request request = { .destination = peer.address, .port = peer.port, .protocol = context->protocol };
  struct sy_frontend frontend;
  struct sy_choice choice = {};
  struct sy_flow_key sticky = {};
  int verdict = sy_find(&request, &frontend);
  /* Nothing can be sent to port 0: an application connects there to learn the source address. */
  if (verdict != SY_FOUND && is_connect && peer.port == 0 && context->protocol == IPPROTO_UDP) verdict = SY_PASS;
  if (verdict == SY_FOUND && sy_is_caller(context, &peer)) verdict = SY_PASS;
  if (verdict != SY_PASS && !sy_fill_client(context, &request)) verdict = SY_PASS;
  if (verdict == SY_FOUND) {
    if (!is_connect) {
      sy_name_flow(context, SY_FLOW_STICKY, &peer.address, peer.port, &sticky);
      sy_find_sticky(&sticky, &request);
    }
    verdict = sy_pick(&request, &frontend, &choice);
  }
  if (verdict == SY_PASS) {
    sy_forget(context, &peer);
    return SY_ALLOW;
  }
  if (verdict == SY_DROP) return SY_REFUSE;
  if (verdict != SY_FORWARD) return sy_refuse();

  struct sy_flow_key reverse;
  sy_name_flow(context, SY_FLOW_REVERSE, &choice.address, choice.port, &reverse);
  if (is_connect) {
    sy_write_flow(&reverse, &peer.address, peer.port, &choice);
  } else {
    if (!choice.is_kept) sy_write_flow(&sticky, &choice.address, choice.port, &choice);
    sy_remember_reverse(&reverse, &peer, &choice);
  }
  sy_write_peer(context, hook, &choice.address, choice.port);
  return SY_ALLOW;
}

/* Reverse direction: shows an endpoint as the frontend that the socket used. */
static __always_inline int sy_show(struct bpf_sock_addr *context, int hook, int is_receive)
{
  struct sy_peer peer;
  sy_read_peer(context, hook, &peer);
  if (!sy_is_for_us(context, &peer.address)) return SY_ALLOW;
  struct sy_flow_key key;
  sy_name_flow(context, SY_FLOW_REVERSE, &peer.address, peer.port, &key);
  const struct sy_flow_value *flow = bpf_map_lookup_elem(&flows, &key);
  if (!flow) {
    if (is_receive) sy_note_caller(context, &peer);
    return SY_ALLOW;
  }
  struct sy_address address = flow->address;
  sy_write_peer(context, hook, &address, flow->port);
  return SY_ALLOW;
}

#define SY_HOOK(name, verdict)            \
  SEC("cgroup/" #name)                    \
  int name(struct bpf_sock_addr *context) \
  {                                       \
    return verdict;                       \
  }

SY_HOOK(connect4, sy_send(context, 4, 1))
SY_HOOK(connect6, sy_send(context, 6, 1))
SY_HOOK(sendmsg4, sy_send(context, 4, 0))
SY_HOOK(sendmsg6, sy_send(context, 6, 0))
SY_HOOK(recvmsg4, sy_show(context, 4, 1))
SY_HOOK(recvmsg6, sy_show(context, 6, 1))
SY_HOOK(getpeername4, sy_show(context, 4, 0))
SY_HOOK(getpeername6, sy_show(context, 6, 0))
