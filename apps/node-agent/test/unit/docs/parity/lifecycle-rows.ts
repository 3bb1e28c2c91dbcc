import type { ParityRow } from './row.ts';

const start: readonly ParityRow[] = [
  {
    what: 'before the first full list of all resources',
    standing: 'same',
    note: 'no rule is written',
  },
  {
    what: 'start on the rules of an earlier run',
    standing: 'same',
    note: 'the rules are adopted in place; no connection fails ([nftables](../design/nftables.md#birthmark-and-versions))',
  },
  {
    what: 'start on the rules of another proxy mode',
    standing: 'better',
    note: 'the agent writes its rules first, then removes those of kube-proxy or of its own other mode. kube-proxy removes first: a gap ([take-over](../operate/upgrade.md#taking-over-from-kube-proxy))',
  },
  {
    what: "start on kube-proxy's chains, in the iptables mode",
    standing: 'better',
    note: 'adopted: only differences are written; kube-proxy writes everything',
  },
  {
    what: 'the `nft` program',
    standing: 'better',
    note: 'not needed. kube-proxy writes with it in all releases, reads by netlink from 1.37 (gate `NFTablesNetlink`), and ships 1.0.6.1 from 1.37',
  },
  { what: 'SIGTERM', standing: 'same', note: 'rules stay; exit code 0, where the signal ends kube-proxy' },
  {
    what: '`--cleanup`',
    standing: 'different',
    note: "prints what it removed, refuses while an agent runs, and removes kube-proxy's rules only with `--switchyard-cleanup-kube-proxy`",
  },
  { what: '`--init-only`, then `CAP_NET_ADMIN` alone', standing: 'same', note: '' },
  {
    what: 'two proxies on one node',
    standing: 'better',
    note: 'the second agent refuses to start and names the first; kube-proxy does not check',
  },
];

const configuration: readonly ParityRow[] = [
  {
    what: 'a changed configuration file',
    standing: 'better',
    note: 'also in a ConfigMap; safe changes apply at once, others end the process with the reason',
  },
  {
    what: 'no mode set',
    since: '1.37',
    standing: 'same',
    note: "iptables, with a warning and an Event (KEP-5343: the default becomes nftables in 1.40); the Event has another reason than kube-proxy's. 1.36 does not warn",
  },
  {
    what: 'a feature gate that is not known, or one set against its lock',
    standing: 'better',
    note: 'a warning and an Event; kube-proxy ends',
  },
  {
    what: '`nodePortAddresses` with `primary` or CIDRs',
    standing: 'same',
    note: '',
  },
  {
    what: '`nodePortAddresses` with `localhost`, `all`, and any combination with `primary` and CIDRs (KEP-6032)',
    since: '1.37',
    standing: 'same',
    note: '1.36 refuses them',
  },
  { what: '`detectLocalMode`', standing: 'same', note: 'all four' },
  {
    what: 'conntrack settings that cannot be written',
    standing: 'better',
    note: 'one warning; kube-proxy ends, except for a read-only /sys',
  },
  {
    what: '`nf_conntrack_max` that is already larger',
    since: '1.38',
    standing: 'same',
    note: 'stays (kubernetes/kubernetes#142035). kube-proxy lowers it in 1.36 and 1.37 and ends where it must not; backports were proposed (kubernetes/kubernetes#142198, #142199)',
  },
  { what: '`oomScoreAdj`', standing: 'same', note: 'a refused write is a warning' },
];

const node: readonly ParityRow[] = [
  {
    what: "the agent's Node, and its primary IP family",
    standing: 'same',
    note: "`--hostname-override`, `bindAddress`, the Node's addresses",
  },
  {
    what: 'no Node object, or one without addresses',
    standing: 'different',
    note: 'waits 30 s only if NodePorts need the address, then uses it when it appears; kube-proxy always waits',
  },
  {
    what: 'the Node gets another address, or its object is deleted',
    standing: 'better',
    note: 'the agent takes the new address without a restart, and keeps the last one if the object is deleted; kube-proxy only logs it in 1.36, and ends from 1.37 on (kubernetes/kubernetes#138183)',
  },
  {
    what: 'the Node gets other pod ranges, with `NodeCIDR`',
    standing: 'better',
    note: 'the agent takes them without a restart; kube-proxy ends',
  },
  { what: 'pod ranges for `NodeCIDR`', standing: 'same', note: 'waits 5 min, then ends' },
  {
    what: 'Events',
    standing: 'better',
    note: "kube-proxy's reasons and reporter, and more ([list](../design/node.md#events)); `kubectl describe service` shows those of a Service, unlike kube-proxy's",
  },
];

const apiServer: readonly ParityRow[] = [
  {
    what: 'API server away, slow, or without the history that a watch needs',
    standing: 'same',
    note: 'rules stay, a new list follows ([every fault with figures](../design/faults.md))',
  },
  {
    what: 'compression of the first objects of a watch (API server from 1.37)',
    since: '1.37',
    standing: 'same',
    note: 'gzip',
  },
  {
    what: 'memory for `metadata.managedFields`',
    since: '1.37',
    standing: 'same',
    note: 'not kept; kube-proxy keeps them in 1.36 (kubernetes/kubernetes#140056)',
  },
];

const drift: readonly ParityRow[] = [
  {
    what: 'another program changes the rules',
    standing: 'better',
    note: 'found at once, repaired and reported; with iptables-legacy after about 30 s, later in large clusters ([drift](../design/drift.md)). kube-proxy repairs at its next full sync, within an hour; iptables within 30 s if all its tables were flushed',
  },
  {
    what: 'periodic full sync with more than 1,000 endpoints',
    standing: 'better',
    note: 'hourly in every cluster; kube-proxy has none in the iptables mode, and from 1.37 none in the nftables mode (kubernetes/kubernetes#138571)',
  },
];

/** Start, configuration, Node, API server and end of the process. */
export const lifecycleRows: readonly ParityRow[] = [...start, ...configuration, ...node, ...apiServer, ...drift];
